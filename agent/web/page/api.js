// SPDX-License-Identifier: Apache-2.0
// The agent's API: requests, and the event stream that says what changed. The token lives here and nowhere else.
let token = '';
export const signedIn = () => token !== '';
export function signIn(t) {
  token = t;
  restart();
}

export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

const head = (more) => ({ ...(token ? { 'X-Nomad-Token': token } : {}), ...more });
export const sessionToken = () => token;

export async function ask(path, { method = 'GET', body, signal, raw } = {}) {
  const r = await fetch(path, { method, signal, credentials: 'omit', cache: 'no-store', headers: head({}), body: body === undefined ? undefined : JSON.stringify(body) });
  if (!r.ok) throw new Refused(r.status, (await r.text()).slice(0, 4000) || `status ${r.status}`);
  if (raw) return r;
  const v = await r.json();
  if (v && typeof v === 'object') Object.defineProperty(v, 'index', { value: Number(r.headers.get('X-Nomad-Index') || 0) });
  return v;
}
export const get = (path, signal) => ask(path, { signal });
export const send = (method, path, body) => ask(path, { method, body });
// What may not be seen or is not there is as good as empty for a page that shows more than that.
export const maybe = (path, otherwise) => get(path).catch((e) => {
  if (e instanceof Refused && e.status !== 500) {
    otherwise && Object.defineProperty(otherwise, 'refused', { value: e.status });
    return otherwise;
  }
  throw e;
});

const listeners = new Set();
export const events = (fn) => {
  listeners.add(fn);
  return () => listeners.delete(fn);
};
export const stream = { live: false, polls: false, index: 0 };
let stop = null;
let timer = 0;

function tell(list) {
  for (const fn of [...listeners]) fn(list);
}

async function* lines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split('\n');
    rest = parts.pop();
    if (rest.length > 64e6) throw new Error('a line without end');
    yield parts;
  }
}

async function run(signal) {
  const topics = ['Job', 'Evaluation', 'Allocation', 'Deployment', 'Node'].map((t) => `topic=${t}`).join('&');
  const r = await ask(`/v1/event/stream?${topics}&namespace=*&index=${stream.index || 1}`, { signal, raw: true });
  stream.polls = false;
  for await (const parts of lines(r.body)) {
    stream.live = true;
    const list = [];
    for (const p of parts) {
      const m = p.length > 2 ? JSON.parse(p) : {};
      if (m.Index) stream.index = m.Index + (m.Error ? 0 : 1); // an error says where to go on
      if (m.Error) throw new Error(m.Error);
      if (m.Events) list.push(...m.Events);
    }
    tell(list);
  }
}

async function follow() {
  const mine = new AbortController();
  stop = mine;
  try {
    await run(mine.signal);
  } catch (e) {
    if (mine.signal.aborted) return;
    if (e instanceof Refused && e.status !== 500) stream.polls = stream.live = true; // no right to it: ask now and then
    else stream.live = false;
  }
  if (mine.signal.aborted) return;
  tell(null);
  timer = setTimeout(follow, stream.polls ? 10000 : 2000);
}

export function restart() {
  stop?.abort();
  clearTimeout(timer);
  stop = null;
  if (document.hidden) return;
  tell(null);
  follow();
}
document.addEventListener('visibilitychange', restart);
