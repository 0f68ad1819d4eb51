"""The relay's half of a session as a state machine: events of both sides in, actions out; pure.

conversation: the verbs that the relay calls → server_events, client_events: state × event → what it does,
on parts: items, answers/, calls/, turn, negotiation, history → actions, with records to be kept.
"""
