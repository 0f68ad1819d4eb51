"""voiceapp: talk with an AI in the browser."""
