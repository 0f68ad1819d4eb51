// @ts-check
/** The messages of the page's socket as types. Written by `python -m docs.generate` from `voiceapp/protocol/page.py`. */
/** @typedef {{[key: string]: any}} Json a JSON object that is passed on as it is */

/**
 * What a page that comes back has of its session.
 * @typedef {object} Resume
 * @property {string} session_id the session, as `session.ready` named it
 * @property {number} seq number of the last message that the page has
 * @property {number} [frames] audio messages that the page has sent in this session
 */
/**
 * Audio formats that the page asks for: `audio/pcm`, `audio/pcmu`, `audio/pcma`, or GA's object.
 * @typedef {object} WantedFormats
 * @property {string | Json | null} [input] of the microphone; null or nothing: the assistant's
 * @property {string | Json | null} [output] of the speaker; null or nothing: the assistant's
 */
/**
 * Who speaks.
 * @typedef {object} PageAssistant
 * @property {string} slug the assistant's short name in addresses
 * @property {string} name the assistant's name for people
 */
/**
 * Audio formats of the binary messages, as GA's objects.
 * @typedef {object} AgreedFormats
 * @property {Json} input of the microphone's messages
 * @property {Json} output of the answers' messages
 */
/**
 * What a session may use.
 * @typedef {object} SessionLimits
 * @property {number} max_session_ms longest duration of the session in milliseconds
 */
/**
 * One message of the user or of an assistant that was said before.
 * @typedef {object} EarlierItem
 * @property {string} item_id the conversation's item
 * @property {string | null} previous_item_id the item before it; null: it is the first
 * @property {string} role `user` or `assistant`
 * @property {string} generated_text the same as `text`
 * @property {string | null} heard_text the part of it that was heard; null: it was not cut
 * @property {number | null} cut_ms milliseconds of it that were heard; null: it was not cut
 * @property {string} transcript_status of spoken input: `pending`, `completed`, `failed` or `doubtful`; else empty
 * @property {string} modality `audio` or `text`
 * @property {string} text all that was said, typed or generated
 * @property {string} speaker name of the assistant whose it is, or to whom it was said
 */
/**
 * What a call would do, as the tool found out: the user's word covers exactly this.
 * @typedef {object} CallPreview
 * @property {string} title the question, a sentence of at most 200 characters
 * @property {string[]} lines what it is about, at most 20 lines of at most 200 characters
 */
/**
 * Why a call came to nothing.
 * @typedef {object} ToolCallFault
 * @property {string} type the kind of error, such as `tool_error`
 * @property {string} code the error, as a stable word
 * @property {string} message a sentence for people
 */
/**
 * Begins a session, goes on from an earlier one, or comes back to a live one; the first message.
 * @typedef {object} SessionStart
 * @property {'session.start'} type
 * @property {string | null} [assistant] slug of the assistant; nothing: the first one
 * @property {string | null} [voice] one of the voices that the assistant offers
 * @property {string | null} [continue] an earlier session whose conversation goes on in a new one
 * @property {Resume | null} [resume] the live session that the page comes back to
 * @property {WantedFormats | null} [audio] audio formats that the page asks for
 * @property {string | null} [time_zone] IANA name of the user's time zone; unknown ones get a `notice`, `time_zone_unknown`
 */
/**
 * How much of an item the page's speaker has played; sent while it plays, and at its end.
 * @typedef {object} PlaybackReport
 * @property {'playback.report'} type
 * @property {string} item_id the conversation's item
 * @property {number} [content_index] the item's part that plays
 * @property {number} played_ms milliseconds of the item's audio that were played
 * @property {boolean} [final] whether nothing more of it will be played
 * @property {number} [seq] number of the last message that the page has: the server forgets it and those before it
 */
/**
 * Asks for `pong`, so that the page notices a connection that is dead.
 * @typedef {object} Ping
 * @property {'ping'} type
 * @property {number} [seq] number of the last message that the page has: the server forgets it and those before it
 */
/**
 * Ends the session: the server answers with `session.ended` and closes the socket.
 * @typedef {object} SessionEnd
 * @property {'session.end'} type
 */
/**
 * Has answers spoken, or only written, from the next one on; answered by `session.output_changed`.
 * @typedef {object} SessionOutput
 * @property {'session.output'} type
 * @property {boolean} audio whether answers are spoken; false: they come as text
 */
/**
 * The session is there and the voice service listens; sent once in a session.
 * @typedef {object} SessionReady
 * @property {'session.ready'} type
 * @property {number} [seq]
 * @property {string} session_id names the session
 * @property {PageAssistant} assistant who speaks
 * @property {AgreedFormats} audio audio formats of the binary messages
 * @property {boolean} transcription whether what the user says is transcribed
 * @property {number} grace_ms milliseconds for which the session waits for a page whose socket broke
 * @property {SessionLimits} limits what the session may use
 * @property {Json | null} turn_detection GA's `turn_detection`; null: push-to-talk, the page commits each turn
 * @property {string} upstream kind of voice service: `embedded`, `azure-ga` or `azure-preview`
 */
/**
 * The page has come back: the messages after `seq` follow. It has no number of its own.
 * @typedef {object} SessionResumed
 * @property {'session.resumed'} type
 * @property {number} seq number after which the messages go on
 * @property {string} session_id names the session
 * @property {boolean} lost whether messages before that are missing
 * @property {number} frames audio messages that the server got: the page sends those after them again
 * @property {boolean} moved whether another server process goes on with the session
 */
/**
 * The session has moved to a new connection to its voice service, which counts audio from 0 again.
 * @typedef {object} SessionRenewed
 * @property {'session.renewed'} type
 * @property {number} [seq]
 */
/**
 * Another assistant goes on with the conversation.
 * @typedef {object} SessionAssistant
 * @property {'session.assistant'} type
 * @property {number} [seq]
 * @property {PageAssistant} assistant who speaks from now on
 * @property {Json | null} turn_detection GA's `turn_detection`; null: push-to-talk, the page commits each turn
 * @property {boolean} transcription whether what the user says is transcribed
 */
/**
 * Whether the voice service speaks its answers; at the beginning it does.
 * @typedef {object} SessionOutputChanged
 * @property {'session.output_changed'} type
 * @property {number} [seq]
 * @property {boolean} audio whether answers are spoken; false: they come as text
 */
/**
 * What was said before, oldest first; of a long conversation the newest part.
 * @typedef {object} SessionHistory
 * @property {'session.history'} type
 * @property {number} [seq]
 * @property {boolean} same_session whether it was said in this session, in another server process
 * @property {EarlierItem[]} items messages of both sides in the conversation's order
 */
/**
 * The session has ended and is kept; the last message before the socket closes.
 * @typedef {object} SessionEnded
 * @property {'session.ended'} type
 * @property {number} [seq]
 * @property {string} reason why, as a stable word; it is the close frame's reason as well
 * @property {string} code the error behind it, as a stable word; without one the reason
 * @property {string} message a sentence for people
 */
/**
 * Audio of an item follows, in binary messages that begin with its `index`.
 * @typedef {object} AudioItem
 * @property {'audio.item'} type
 * @property {number} [seq]
 * @property {number} index the first four bytes of its binary messages, big-endian
 * @property {string} item_id the conversation's item
 * @property {number} content_index the item's part that is spoken
 * @property {string} response_id the response that the item belongs to
 * @property {'audio/pcm' | 'audio/pcmu' | 'audio/pcma'} format audio format of the voice service
 */
/**
 * The page stops an item's audio at once, drops what waits, and reports what was played as `final`.
 * @typedef {object} AudioCut
 * @property {'audio.cut'} type
 * @property {number} [seq]
 * @property {string} item_id the conversation's item
 * @property {string} response_id the response that the item belongs to
 */
/**
 * How much of an answer that was cut was heard.
 * @typedef {object} CaptionHeard
 * @property {'caption.heard'} type
 * @property {number} [seq]
 * @property {string} item_id the conversation's item
 * @property {string} heard_text the words that were heard
 * @property {number} cut_ms milliseconds of its audio that were heard
 */
/**
 * No transcript of what the user said will come.
 * @typedef {object} CaptionFailed
 * @property {'caption.failed'} type
 * @property {number} [seq]
 * @property {string} item_id the conversation's item
 */
/**
 * The transcript is of audio without speech: the words may be invented.
 * @typedef {object} CaptionDoubtful
 * @property {'caption.doubtful'} type
 * @property {number} [seq]
 * @property {string} item_id the conversation's item
 */
/**
 * A tool's call waits for the user; the answer is a Realtime item `mcp_approval_response`.
 * @typedef {object} ApprovalRequested
 * @property {'approval.requested'} type
 * @property {number} [seq]
 * @property {string} approval_request_id names the question; the answer repeats it
 * @property {string} server_label the MCP server or HTTP service that the tool is of; empty: of neither
 * @property {string} name the tool's name there
 * @property {string} arguments the call's arguments, JSON text
 * @property {string} call_id the call that waits; empty where the service asks before there is one
 * @property {number} timeout_ms milliseconds after which the call is refused
 * @property {CallPreview} [preview] what the call would do, where its tool says so
 */
/**
 * A question needs no answer any more.
 * @typedef {object} ApprovalSettled
 * @property {'approval.settled'} type
 * @property {number} [seq]
 * @property {string} approval_request_id names the question; the answer repeats it
 * @property {'allowed' | 'denied' | 'timed_out' | 'withdrawn'} outcome how it ended
 */
/**
 * What a running tool says of itself.
 * @typedef {object} ToolProgress
 * @property {'tool.progress'} type
 * @property {number} [seq]
 * @property {string} call_id the call, as `response.tool_call.started` named it
 * @property {string} message a sentence for people; it replaces the one before
 */
/**
 * A sentence for the person at the page; a later one of the same `code` replaces it.
 * @typedef {object} Notice
 * @property {'notice'} type
 * @property {number} [seq]
 * @property {string} code what it is about, as a stable word
 * @property {string} message the sentence
 * @property {'error' | 'info' | 'warning'} level how serious it is
 * @property {string} [server_label] the MCP server that it is about, if it is about one
 * @property {string} [reason] why that server's tools cannot be had, in its words
 */
/**
 * Answers `ping`.
 * @typedef {object} Pong
 * @property {'pong'} type
 * @property {number} [seq]
 */
/**
 * A call begins; always its first event.
 * @typedef {object} ToolCallStarted
 * @property {'response.tool_call.started'} type
 * @property {number} [seq]
 * @property {number} index place among the reply's output items, from 0
 * @property {string} item_id the item of the call
 * @property {string} call_id says which events belong together
 * @property {string} name the tool's name
 */
/**
 * More of a call's arguments.
 * @typedef {object} ToolCallDelta
 * @property {'response.tool_call.delta'} type
 * @property {number} [seq]
 * @property {number} index place among the reply's output items, from 0
 * @property {string} item_id the item of the call
 * @property {string} call_id says which events belong together
 * @property {string} arguments_delta what follows in the arguments' JSON text
 */
/**
 * A call's arguments are complete: all its deltas put together.
 * @typedef {object} ToolCallCompleted
 * @property {'response.tool_call.completed'} type
 * @property {number} [seq]
 * @property {number} index place among the reply's output items, from 0
 * @property {string} item_id the item of the call
 * @property {string} call_id says which events belong together
 * @property {string} name the tool's name
 * @property {string} arguments the arguments' JSON text
 */
/**
 * A call that had started will not be completed.
 * @typedef {object} ToolCallError
 * @property {'response.tool_call.error'} type
 * @property {number} [seq]
 * @property {number} index place among the reply's output items, from 0
 * @property {string} item_id the item of the call
 * @property {string} call_id says which events belong together
 * @property {ToolCallFault} error why there is no result
 */
/**
 * Whether a page may open the socket, in answer to the page's question by HTTP.
 * @typedef {object} Admission
 * @property {number | null} code the close code that a refusal would have, or its HTTP status; null: it may
 * @property {string} message why it may not, as a sentence for people; empty: it may
 */
/**
 * @typedef {SessionStart | PlaybackReport | Ping | SessionEnd | SessionOutput} ClientMessage what the page sends
 */
/**
 * @typedef {SessionReady | SessionResumed | SessionRenewed | SessionAssistant | SessionOutputChanged | SessionHistory |
 *   SessionEnded | AudioItem | AudioCut | CaptionHeard | CaptionFailed | CaptionDoubtful | ApprovalRequested | ApprovalSettled
 *   | ToolProgress | Notice | Pong | ToolCallStarted | ToolCallDelta | ToolCallCompleted | ToolCallError} ServerMessage what
 *   the server sends itself
 */
/**
 * @typedef {1011 | 4000 | 4001 | 4003 | 4004 | 4008 | 4009 | 4010 | 4011 | 4012 | 4013 | 4014 | 4015 | 4016 | 4017 | 4019 |
 *   4020} CloseCode why the server closes the socket
 */
export {};
