// @ts-check
/** Calls of tools, and the questions whether they may run, as parts of the page's state. Pure. */

/** @typedef {import('../realtime/messages.js').Notice} Notice */
/** @typedef {import('../realtime/events.js').WireItem} WireItem */
/** @typedef {import('./conversation.js').State} State */
/** @typedef {import('./conversation.js').Caption} Caption */
/**
 * @typedef {{
 *   state: 'made' | 'running' | 'waiting' | 'done' | 'failed' | 'denied' | 'unavailable',
 *   callId: string, server: string, note: string, result: string,
 * }} Tool
 * `note` says more: what a running tool is doing, or why one failed; `result` is what one that is done gave.
 */
/**
 * @typedef {{
 *   id: string, name: string, server: string, arguments: string, callId: string,
 *   endsAt: number, totalMs: number, answered: boolean, preview: {title: string, lines: string[]} | null,
 * }} Approval
 * `preview` is what the call would do, where its tool says so.
 * `endsAt` is on the page's clock; `answered` from the press of a button to the server's word.
 */
/** @typedef {(state: State, id: string, change: Partial<Caption>) => State} Upsert */

/**
 * @param {Caption | undefined} caption
 * @param {Partial<Tool>} change
 * @returns {Tool}
 */
function withTool(caption, change) {
  const old = caption?.tool ?? { state: 'made', callId: '', server: '', note: '', result: '' };
  return { ...old, ...change };
}

/**
 * A call's item: its place in the conversation and its server. How it goes is told by events of its own.
 * @param {Caption | undefined} old
 * @param {WireItem} item
 * @returns {Partial<Caption>}
 */
export function callItem(old, item) {
  const server = typeof item.server_label === 'string' ? item.server_label : '';
  return { role: 'tool', text: old?.text || (item.name ?? 'tool'), tool: withTool(old, { ...(server ? { server } : {}), ...(typeof item.output === 'string' ? { result: item.output } : {}) }) };
}

/**
 * What a call gave is shown in its line.
 * @param {State} state
 * @param {WireItem} item
 * @param {Upsert} upsert
 * @returns {State}
 */
export function callReturned(state, item, upsert) {
  const caption = ofCall(state, item.call_id ?? '');
  if (!caption || typeof item.output !== 'string') return state;
  return upsert(state, caption.id, { tool: withTool(caption, { result: item.output }) });
}

/**
 * @param {State} state
 * @param {string} callId
 * @returns {Caption | undefined}
 */
function ofCall(state, callId) {
  return callId ? Object.values(state.captions).find((caption) => caption.tool?.callId === callId) : undefined;
}

/**
 * @param {Upsert} upsert
 * @returns {import('./page_events.js').Handlers} what each event of a tool does
 */
export function toolHandlers(upsert) {
  /**
   * @param {State} state
   * @param {{item_id: string}} event
   * @param {Partial<Tool>} change
   * @param {Partial<Caption>} [more]
   * @returns {State}
   */
  const change = (state, event, change, more = {}) => {
    const old = state.captions[event.item_id];
    const place = old ? {} : { previousId: state.order.at(-1) ?? null };
    return upsert(state, event.item_id, { role: 'tool', ...place, ...more, tool: withTool(old, change) });
  };
  /**
   * @param {State} state
   * @param {string} callId
   * @param {Partial<Tool>} change
   * @returns {State}
   */
  const ofTool = (state, callId, change) => {
    const caption = ofCall(state, callId);
    return caption && !caption.done ? upsert(state, caption.id, { tool: withTool(caption, change) }) : state;
  };
  return {
    'response.tool_call.started': (state, event) =>
      change(state, event, { state: 'running', callId: event.call_id }, { text: event.name }),
    'response.tool_call.completed': (state, event) =>
      change(state, event, { state: 'done', callId: event.call_id, note: '' }, { text: event.name, done: true }),
    'response.tool_call.error': (state, event) => {
      const code = String(event.error.code ?? '');
      const denied = code === 'not_approved';
      // Neither is broken: the line itself says what became of the call.
      const note = denied || code === 'cancelled' ? '' : String(event.error.message ?? '');
      return change(state, event, { state: denied ? 'denied' : 'failed', callId: event.call_id, note }, { done: true });
    },
    'tool.progress': (state, event) => ofTool(state, event.call_id, { note: event.message }),
    'approval.requested': (state, event) => {
      const asked = {
        id: event.approval_request_id, name: event.name, server: String(event.server_label ?? ''),
        arguments: event.arguments, callId: String(event.call_id ?? ''),
        endsAt: Number(event.at ?? 0) + event.timeout_ms, totalMs: event.timeout_ms, answered: false,
        preview: event.preview ?? null,
      };
      const others = state.approvals.filter((approval) => approval.id !== asked.id);
      return ofTool({ ...state, approvals: [...others, asked] }, asked.callId, { state: 'waiting' });
    },
    'approval.settled': (state, event) => {
      const settled = state.approvals.find((approval) => approval.id === event.approval_request_id);
      if (!settled) return state;
      const approvals = state.approvals.filter((approval) => approval !== settled);
      return ofTool({ ...state, approvals }, settled.callId, { state: event.outcome === 'allowed' ? 'running' : 'denied' });
    },
    'local.answered': (state, event) => ({
      ...state,
      approvals: state.approvals.map((each) => (each.id === event.approval_request_id ? { ...each, answered: true } : each)),
    }),
  };
}

/**
 * A server whose tools cannot be had: a line among the captions, once for each server.
 * @param {State} state
 * @param {Notice} event
 * @param {Upsert} upsert
 * @returns {State}
 */
export function serverUnavailable(state, event, upsert) {
  const label = String(event.server_label || 'MCP server');
  const id = `server:${label}`;
  const place = state.captions[id] ? {} : { previousId: state.order.at(-1) ?? null };
  return upsert(state, id, {
    role: 'tool', text: label, done: true, ...place,
    tool: { state: 'unavailable', callId: '', server: '', result: '', note: String(event.reason ?? '') },
  });
}
