// @ts-check
/** One call at a time in the tabs of a browser: who talks holds a lock, and hands the call to the tab that asks for it. */

/** @typedef {import('../state/kept_call.js').KeptCall} KeptCall */
/** @typedef {{type: 'move', to: string} | {type: 'moved', to: string, call: KeptCall | null}} TabMessage */
/** @typedef {Pick<BroadcastChannel, 'postMessage'> & {onmessage: ((message: MessageEvent<TabMessage>) => void) | null}} Channel */

const LOCK = 'voiceapp.call';
/** A page that is loaded anew waits so long for the one before it to be gone. */
const RELOAD_MS = 1500;
/** A tab that does not hand over by then hangs, and its session is taken without it. */
const HAND_OVER_MS = 2000;

export class Tabs {
  /**
   * @param {Pick<LockManager, 'request'> | undefined} locks nothing where the page is not secure: each tab is alone then
   * @param {Channel | null} channel
   * @param {string} name of this tab
   * @param {() => KeptCall | null} onAsked another tab wants the call: let go of it, and return what is needed to go on
   */
  constructor(locks, channel, name, onAsked) {
    this.locks = locks;
    this.channel = channel;
    this.name = name;
    /** @type {(() => void) | null} */
    this.free = null;
    /** @type {((call: KeptCall | null) => void) | null} */
    this.handed = null;
    if (!channel) return;
    channel.onmessage = ({ data }) => {
      if (data.type === 'moved' && data.to === name) this.handed?.(data.call);
      if (data.type !== 'move' || !this.free) return;
      const call = onAsked();
      this.release();
      channel.postMessage({ type: 'moved', to: data.to, call });
    };
  }

  /**
   * Be the tab that talks, if none does.
   * @param {number} [patienceMs] how long to wait for another one to stop
   * @returns {Promise<boolean>} whether this tab may talk
   */
  async claim(patienceMs = 0) {
    const { locks } = this;
    if (!locks || this.free) return true;
    const how = patienceMs ? { signal: AbortSignal.timeout(patienceMs) } : { ifAvailable: true };
    return new Promise((resolve) => {
      locks.request(LOCK, how, (lock) => {
        resolve(lock !== null);
        return lock && new Promise((/** @type {(value?: unknown) => void} */ free) => {
          this.free = () => free();
        });
      }).catch(() => resolve(false));
    });
  }

  /** As `claim`, for a page that may have been loaded anew. */
  claimAgain() {
    return this.claim(RELOAD_MS);
  }

  /** Another tab may talk. */
  release() {
    this.free?.();
    this.free = null;
  }

  /**
   * Have the tab that talks hand over its call.
   * @returns {Promise<KeptCall | null>} null where there is nothing to go on with any more
   */
  async takeOver() {
    const call = await new Promise((/** @type {(call: KeptCall | null) => void} */ resolve) => {
      this.handed = resolve;
      setTimeout(() => resolve(null), HAND_OVER_MS);
      this.channel?.postMessage({ type: 'move', to: this.name });
    });
    this.handed = null;
    return (await this.claim(HAND_OVER_MS)) ? call : null;
  }
}
