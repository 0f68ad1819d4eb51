"""One conversation between a page and a Realtime service: state machines, events in and actions out; pure."""
