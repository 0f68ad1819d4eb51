"""From the microphone to turns and words.

listener: one session's ear on its tasks → ear: samples to turns and captions, with utterance (one speech),
echo (what the loudspeaker says is no speech) and dtmf (telephone keys).
"""
