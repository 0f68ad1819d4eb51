// @ts-check
/** The Realtime events on the page's socket as types. Written by `python -m docs.generate` from `voiceapp/protocol/events.py`. */
/** @typedef {import('./messages.js').Json} Json */

/** @typedef {{type: 'input_audio_buffer.append', event_id?: string, audio: string}} InputAudioBufferAppend */
/** @typedef {{type: 'input_audio_buffer.commit', event_id?: string}} InputAudioBufferCommit */
/** @typedef {{type: 'input_audio_buffer.clear', event_id?: string}} InputAudioBufferClear */
/** @typedef {{type: 'output_audio_buffer.clear', event_id?: string}} OutputAudioBufferClear */
/**
 * @typedef {{
 *   type: 'conversation.item.create', event_id?: string, item: Json, previous_item_id?: string | null,
 * }} ConversationItemCreate
 */
/** @typedef {{type: 'conversation.item.delete', event_id?: string, item_id: string}} ConversationItemDelete */
/** @typedef {{type: 'conversation.item.retrieve', event_id?: string, item_id: string}} ConversationItemRetrieve */
/**
 * @typedef {{
 *   type: 'conversation.item.truncate', event_id?: string, item_id: string, content_index: number, audio_end_ms: number,
 * }} ConversationItemTruncate
 */
/** @typedef {{type: 'response.create', event_id?: string, response?: Json | null}} ResponseCreate */
/** @typedef {{type: 'response.cancel', event_id?: string, response_id?: string | null}} ResponseCancel */
/** @typedef {{type: 'error', seq?: number, event_id: string, error: Json}} ServiceError */
/** @typedef {{type: 'session.created', seq?: number, event_id: string, session: Json}} SessionCreated */
/** @typedef {{type: 'session.updated', seq?: number, event_id: string, session: Json}} SessionUpdated */
/**
 * @typedef {{
 *   type: 'transcription_session.updated', seq?: number, event_id: string, session: Json,
 * }} TranscriptionSessionUpdated
 */
/** @typedef {{type: 'rate_limits.updated', seq?: number, event_id: string, rate_limits: Json[]}} RateLimitsUpdated */
/** @typedef {{type: 'conversation.created', seq?: number, event_id: string, conversation: Json}} ConversationCreated */
/**
 * @typedef {{
 *   type: 'conversation.item.added', seq?: number, event_id: string, item: Json, previous_item_id?: string | null,
 * }} ConversationItemAdded
 */
/**
 * @typedef {{
 *   type: 'conversation.item.created', seq?: number, event_id: string, item: Json, previous_item_id?: string | null,
 * }} ConversationItemCreated
 */
/**
 * @typedef {{
 *   type: 'conversation.item.done', seq?: number, event_id: string, item: Json, previous_item_id?: string | null,
 * }} ConversationItemDone
 */
/** @typedef {{type: 'conversation.item.retrieved', seq?: number, event_id: string, item: Json}} ConversationItemRetrieved */
/**
 * @typedef {{
 *   type: 'conversation.item.truncated', seq?: number, event_id: string, item_id: string, content_index: number, audio_end_ms:
 *   number,
 * }} ConversationItemTruncated
 */
/** @typedef {{type: 'conversation.item.deleted', seq?: number, event_id: string, item_id: string}} ConversationItemDeleted */
/**
 * @typedef {{
 *   type: 'conversation.item.input_audio_transcription.delta', seq?: number, event_id: string, item_id: string, delta: string,
 *   content_index?: number,
 * }} ConversationItemInputAudioTranscriptionDelta
 */
/**
 * @typedef {{
 *   type: 'conversation.item.input_audio_transcription.segment', seq?: number, event_id: string, item_id: string, id: string,
 *   text: string, start: number, end: number, speaker: string, content_index?: number,
 * }} ConversationItemInputAudioTranscriptionSegment
 */
/**
 * @typedef {{
 *   type: 'conversation.item.input_audio_transcription.completed', seq?: number, event_id: string, item_id: string,
 *   content_index: number, transcript: string, usage?: Json,
 * }} ConversationItemInputAudioTranscriptionCompleted
 */
/**
 * @typedef {{
 *   type: 'conversation.item.input_audio_transcription.failed', seq?: number, event_id: string, item_id: string, content_index:
 *   number, error: Json,
 * }} ConversationItemInputAudioTranscriptionFailed
 */
/**
 * @typedef {{
 *   type: 'input_audio_buffer.committed', seq?: number, event_id: string, item_id: string, previous_item_id?: string | null,
 * }} InputAudioBufferCommitted
 */
/** @typedef {{type: 'input_audio_buffer.cleared', seq?: number, event_id: string}} InputAudioBufferCleared */
/**
 * @typedef {{
 *   type: 'input_audio_buffer.speech_started', seq?: number, event_id: string, audio_start_ms: number, item_id: string,
 * }} InputAudioBufferSpeechStarted
 */
/**
 * @typedef {{
 *   type: 'input_audio_buffer.speech_stopped', seq?: number, event_id: string, audio_end_ms: number, item_id: string,
 * }} InputAudioBufferSpeechStopped
 */
/**
 * @typedef {{
 *   type: 'input_audio_buffer.timeout_triggered', seq?: number, event_id: string, audio_start_ms: number, audio_end_ms: number,
 *   item_id: string,
 * }} InputAudioBufferTimeoutTriggered
 */
/**
 * @typedef {{
 *   type: 'output_audio_buffer.started', seq?: number, event_id: string, response_id: string,
 * }} OutputAudioBufferStarted
 */
/**
 * @typedef {{
 *   type: 'output_audio_buffer.stopped', seq?: number, event_id: string, response_id: string,
 * }} OutputAudioBufferStopped
 */
/**
 * @typedef {{
 *   type: 'output_audio_buffer.cleared', seq?: number, event_id: string, response_id: string,
 * }} OutputAudioBufferCleared
 */
/** @typedef {{type: 'response.created', seq?: number, event_id: string, response: Json}} ResponseCreated */
/** @typedef {{type: 'response.done', seq?: number, event_id: string, response: Json}} ResponseDone */
/**
 * @typedef {{
 *   type: 'response.output_item.added', seq?: number, event_id: string, response_id: string, output_index: number, item: Json,
 * }} ResponseOutputItemAdded
 */
/**
 * @typedef {{
 *   type: 'response.output_item.done', seq?: number, event_id: string, response_id: string, output_index: number, item: Json,
 * }} ResponseOutputItemDone
 */
/**
 * @typedef {{
 *   type: 'response.content_part.added', seq?: number, event_id: string, response_id: string, output_index: number, item_id:
 *   string, content_index: number, part: Json,
 * }} ResponseContentPartAdded
 */
/**
 * @typedef {{
 *   type: 'response.content_part.done', seq?: number, event_id: string, response_id: string, output_index: number, item_id:
 *   string, content_index: number, part: Json,
 * }} ResponseContentPartDone
 */
/**
 * @typedef {{
 *   type: 'response.output_text.delta', seq?: number, event_id: string, response_id: string, output_index: number, item_id:
 *   string, content_index: number, delta: string,
 * }} ResponseOutputTextDelta
 */
/**
 * @typedef {{
 *   type: 'response.output_text.done', seq?: number, event_id: string, response_id: string, output_index: number, item_id:
 *   string, content_index: number, text: string,
 * }} ResponseOutputTextDone
 */
/**
 * @typedef {{
 *   type: 'response.output_audio.done', seq?: number, event_id: string, response_id: string, output_index: number, item_id:
 *   string, content_index: number,
 * }} ResponseOutputAudioDone
 */
/**
 * @typedef {{
 *   type: 'response.output_audio_transcript.delta', seq?: number, event_id: string, response_id: string, output_index: number,
 *   item_id: string, content_index: number, delta: string,
 * }} ResponseOutputAudioTranscriptDelta
 */
/**
 * @typedef {{
 *   type: 'response.output_audio_transcript.done', seq?: number, event_id: string, response_id: string, output_index: number,
 *   item_id: string, content_index: number, transcript: string,
 * }} ResponseOutputAudioTranscriptDone
 */
/**
 * @typedef {{
 *   type: 'response.function_call_arguments.delta', seq?: number, event_id: string, response_id: string, output_index: number,
 *   item_id: string, call_id: string, delta: string,
 * }} ResponseFunctionCallArgumentsDelta
 */
/**
 * @typedef {{
 *   type: 'response.function_call_arguments.done', seq?: number, event_id: string, response_id: string, output_index: number,
 *   item_id: string, call_id: string, arguments: string, name?: string,
 * }} ResponseFunctionCallArgumentsDone
 */
/**
 * @typedef {{
 *   type: 'response.mcp_call_arguments.delta', seq?: number, event_id: string, response_id: string, output_index: number,
 *   item_id: string, delta: string,
 * }} ResponseMcpCallArgumentsDelta
 */
/**
 * @typedef {{
 *   type: 'response.mcp_call_arguments.done', seq?: number, event_id: string, response_id: string, output_index: number,
 *   item_id: string, arguments: string,
 * }} ResponseMcpCallArgumentsDone
 */
/**
 * @typedef {{
 *   type: 'response.mcp_call.in_progress', seq?: number, event_id: string, item_id: string, output_index: number,
 * }} ResponseMcpCallInProgress
 */
/**
 * @typedef {{
 *   type: 'response.mcp_call.completed', seq?: number, event_id: string, item_id: string, output_index: number,
 * }} ResponseMcpCallCompleted
 */
/**
 * @typedef {{
 *   type: 'response.mcp_call.failed', seq?: number, event_id: string, item_id: string, output_index: number,
 * }} ResponseMcpCallFailed
 */
/** @typedef {{type: 'mcp_list_tools.in_progress', seq?: number, event_id: string, item_id: string}} McpListToolsInProgress */
/** @typedef {{type: 'mcp_list_tools.completed', seq?: number, event_id: string, item_id: string}} McpListToolsCompleted */
/** @typedef {{type: 'mcp_list_tools.failed', seq?: number, event_id: string, item_id: string}} McpListToolsFailed */
/**
 * @typedef {{
 *   type: 'input_audio_buffer.dtmf_event_received', seq?: number, event_id?: string, event?: string, received_at?: number,
 *   digit?: string,
 * }} InputAudioBufferDtmfEventReceived
 */
/**
 * @typedef {InputAudioBufferAppend | InputAudioBufferCommit | InputAudioBufferClear | OutputAudioBufferClear |
 *   ConversationItemCreate | ConversationItemDelete | ConversationItemRetrieve | ConversationItemTruncate | ResponseCreate |
 *   ResponseCancel} RealtimeClientEvent what the page may send to the service
 */
/**
 * @typedef {ServiceError | SessionCreated | SessionUpdated | TranscriptionSessionUpdated | RateLimitsUpdated |
 *   ConversationCreated | ConversationItemAdded | ConversationItemCreated | ConversationItemDone | ConversationItemRetrieved |
 *   ConversationItemTruncated | ConversationItemDeleted | ConversationItemInputAudioTranscriptionDelta |
 *   ConversationItemInputAudioTranscriptionSegment | ConversationItemInputAudioTranscriptionCompleted |
 *   ConversationItemInputAudioTranscriptionFailed | InputAudioBufferCommitted | InputAudioBufferCleared |
 *   InputAudioBufferSpeechStarted | InputAudioBufferSpeechStopped | InputAudioBufferTimeoutTriggered | OutputAudioBufferStarted
 *   | OutputAudioBufferStopped | OutputAudioBufferCleared | ResponseCreated | ResponseDone | ResponseOutputItemAdded |
 *   ResponseOutputItemDone | ResponseContentPartAdded | ResponseContentPartDone | ResponseOutputTextDelta |
 *   ResponseOutputTextDone | ResponseOutputAudioDone | ResponseOutputAudioTranscriptDelta | ResponseOutputAudioTranscriptDone |
 *   ResponseFunctionCallArgumentsDelta | ResponseFunctionCallArgumentsDone | ResponseMcpCallArgumentsDelta |
 *   ResponseMcpCallArgumentsDone | ResponseMcpCallInProgress | ResponseMcpCallCompleted | ResponseMcpCallFailed |
 *   McpListToolsInProgress | McpListToolsCompleted | McpListToolsFailed | InputAudioBufferDtmfEventReceived}
 *   RealtimeServerEvent what the service sends to the page
 */
export {};
