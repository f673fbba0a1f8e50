// SPDX-License-Identifier: Apache-2.0
// The frame of the page: addresses, the header, keys, and when what is shown is asked for again.
import { h, show, link } from './dom.js';
import { get, send, maybe, events, stream, restart, Refused, signIn, signedIn } from './api.js';
import { span, jobPath, nodePath, allocPath, short } from './words.js';
import { overview } from './overview.js';
import { job } from './job.js';
import { jobs, nodes, services, variables, volumes } from './lists.js';
import { alloc } from './alloc.js';
import { node } from './node.js';
import { runJob } from './edit.js';

const NAV = [['Overview', '/ui/', 'o'], ['Jobs', '/ui/jobs', 'j'], ['Nodes', '/ui/clients', 'n'],
  ['Services', '/ui/services', 's'], ['Variables', '/ui/variables', 'v'], ['Volumes', '/ui/storage', 'd']];

const token = {
  title: 'Token', load: async () => maybe('/v1/acl/token/self', null),
  view: (who, at, app) => [
    h('h1', {}, 'Sign in'),
    h('p', { class: 'sub' }, 'The token stays in the memory of this page. It is asked for again after a reload.'),
    h('form', { class: 'panel one', onsubmit: (e) => {
      e.preventDefault();
      signIn(e.target.elements.secret.value.trim());
      e.target.reset();
      app.refresh();
    } },
    h('label', {}, 'Secret ID of a token ', h('input', { name: 'secret', type: 'password', autocomplete: 'off', required: true })), ' ',
    h('button', { class: 'main' }, 'Sign in'), ' ',
    signedIn() ? h('button', { type: 'button', onclick: () => { signIn(''); app.refresh(); } }, 'Sign out') : null,
    h('p', {}, who ? ['This is ', h('b', {}, who.Name || who.AccessorID), `, a token of type ${who.Type}.`] : signedIn() ? 'The servers do not know this token.' : null)),
  ],
};

// [a pattern of paths, the page]; what the pattern's parentheses take is `at.id`.
const ROUTES = [
  [/^\/ui\/?$/, overview], [/^\/ui\/jobs\/?$/, jobs], [/^\/ui\/jobs\/run\/?$/, runJob], [/^\/ui\/jobs\/(.+)$/, job],
  [/^\/ui\/clients\/(.+)$/, node], [/^\/ui\/allocations\/(.+)$/, alloc], [/^\/ui\/services/, services], [/^\/ui\/variables/, variables], [/^\/ui\/storage/, volumes],
  [/^\/ui\/(?:clients|topology)\/?$/, nodes], [/^\/ui\/settings\/tokens\/?$/, token],
];
const nowhere = { title: 'Nothing here', load: async () => ({}), view: () => [h('h1', {}, 'There is nothing at this address.'), link('/ui/', 'To the overview')] };

const header = document.body.appendChild(document.createElement('header'));
const main = document.body.appendChild(document.createElement('main'));
const dialog = document.body.appendChild(document.createElement('dialog'));
let at = null; // where we are: {page, id, path, query}
let data = null;
let error = null;
let took = 0;
let loadedAt = 0;
let loading = null;
let again = 0;
let dirty = false;
let self = {};
let found = null;
let drawn = '';

function where() {
  const u = new URL(location.href);
  for (const [pattern, page] of ROUTES) {
    const m = u.pathname.match(pattern);
    if (m) return { page, id: m[1] || '', path: u.pathname, query: u.searchParams };
  }
  return { page: nowhere, id: '', path: u.pathname, query: u.searchParams };
}

const app = {
  refresh: () => load(true),
  render,
  go(path) {
    history.pushState(null, '', path);
    arrive();
  },
  // Does what a button says; a refusal is told where it was asked for.
  async act(what, done) {
    try {
      await what();
      app.said = done || '';
      app.failed = '';
    } catch (e) {
      app.failed = e.message;
    }
    load(true);
    render();
  },
  // What destroys asks once, by name.
  sure(title, text, verb, fn) {
    show(dialog, h('h2', {}, title), h('p', {}, text), h('form', { method: 'dialog', class: 'acts' },
      h('button', { value: 'no', autofocus: true }, 'Leave it'),
      h('button', { class: 'main', onclick: () => app.act(fn) }, verb)));
    dialog.showModal();
  },
};

function arrive() {
  at?.page.leave?.();
  at = where();
  data = error = null;
  app.said = app.failed = '';
  found = null;
  took = 0;
  at.page.arrive?.(at, app);
  render();
  load(true);
  scrollTo(0, 0);
}

async function load(now) {
  if (loading && !now) {
    dirty = true;
    return;
  }
  clearTimeout(again);
  again = 0;
  loading?.abort();
  const mine = new AbortController();
  const began = performance.now();
  loading = mine;
  dirty = false;
  try {
    const v = await at.page.load(at, mine.signal);
    if (mine.signal.aborted) return;
    data = v;
    error = null;
    loadedAt = Date.now();
  } catch (e) {
    if (mine.signal.aborted) return;
    error = e;
    if (!(e instanceof Refused) || e.status >= 500) later(2000);
  }
  loading = null;
  took = performance.now() - began;
  render();
  if (dirty) later(0);
}

// Asks again, but not more often than the servers' time allows.
function later(least) {
  const gap = Math.max(least, Math.max(500, took * 4) - (Date.now() - loadedAt));
  if (!again) again = setTimeout(() => {
    again = 0;
    load(false);
  }, Math.max(0, gap));
}

events((list) => {
  if (list === null || list.some((e) => !at.page.about || at.page.about(e, at))) later(0);
  for (const e of list || []) at.page.event?.(e, at);
  if (list?.length && at.page.event && data) requestAnimationFrame(render);
  drawHeader();
});

function note() {
  if (!error) return null;
  if (error instanceof Refused && error.status === 403)
    return h('p', { class: 'note' }, 'The token of this page has not the right to see this. ', link('/ui/settings/tokens', 'Sign in with another one'), '.');
  if (error instanceof Refused && error.status < 500) return h('p', { class: 'error' }, error.message);
  return h('p', { class: 'error', role: 'status' }, loadedAt ? `No answer for ${span(Date.now() - loadedAt)}, trying again: ` : 'No answer yet: ', error.message);
}

function render() {
  document.title = `${at.page.name?.(at) || at.page.title} - Paddock`;
  main.className = error && data ? 'stale' : '';
  show(main, note(), app.failed ? h('p', { class: 'error', role: 'alert' }, app.failed) : null,
    app.said ? h('p', { class: 'help', role: 'status' }, app.said) : null,
    data || at.page.shell ? at.page.view(data, at, app) : error ? null : h('h1', { class: 'verdict' }, at.page.name?.(at) || at.page.title));
  drawHeader();
}

function drawHeader() {
  const label = self.config?.UI?.Label || {};
  const nav = NAV.map(([name, path]) => link(path, name, { 'aria-current': at.page.nav === name ? 'page' : null }));
  const state = error && !(error instanceof Refused && error.status < 500) ? h('span', { class: 'bad' }, '✕ away') : stream.live ? h('span', { class: 'good' }, '● live') : h('span', { class: 'soft' }, '○ waits');
  const sum = [at.page.nav, JSON.stringify(label), stream.live, !!error, found && JSON.stringify(found), signedIn(), self.member?.Name].join();
  if (sum === drawn) return;
  drawn = sum;
  show(header, link('/ui/', 'Paddock', { class: 'name' }),
    h('nav', { 'aria-label': 'pages' }, nav),
    label.Text ? h('span', { class: 'label', style: { 'background-color': label.BackgroundColor || '', color: label.TextColor || '' } }, label.Text) : null,
    h('div', { class: 'find' }, h('input', { type: 'search', placeholder: 'Find anything  /', 'aria-label': 'find anything', oninput: find, onkeydown: findKey, onfocus: find }), found ? foundList() : null),
    h('span', { class: 'where' }, self.config?.Region ? `region ${self.config.Region}` : '', ' ', link('/ui/settings/tokens', signedIn() ? 'token' : 'sign in')),
    h('span', { class: 'state', role: 'status' }, state));
}

let finding = 0;
async function find(e) {
  const text = e.target.value.trim();
  const mine = ++finding;
  if (!text) {
    found = null;
    return drawHeader();
  }
  const r = await send('POST', '/v1/search/fuzzy?namespace=*', { Text: text, Context: 'all' }).catch(() => send('POST', '/v1/search?namespace=*', { Prefix: text, Context: 'all' })).catch(() => ({ Matches: {} }));
  if (mine !== finding) return undefined;
  found = [];
  for (const m of r.Matches?.jobs || []) found.push(typeof m === 'string' ? ['job', m, jobPath(m, '*')] : ['job', m.ID, jobPath(m.Scope?.[1] || m.ID, m.Scope?.[0])]);
  for (const m of r.Matches?.nodes || []) found.push(typeof m === 'string' ? ['node', short(m), nodePath(m)] : ['node', m.ID, nodePath(m.Scope?.[0])]);
  for (const m of r.Matches?.allocs || []) found.push(typeof m === 'string' ? ['allocation', short(m), allocPath(m)] : ['allocation', m.ID, allocPath(m.Scope?.[1])]);
  return drawHeader();
}
const foundList = () => h('div', { class: 'found' }, found.length ? found.slice(0, 40).map(([kind, name, path]) => link(path, [h('span', { class: 'soft' }, kind, ' '), name])) : h('span', { class: 'soft' }, 'Nothing by that name.'));
function findKey(e) {
  if (e.key === 'Escape') {
    e.target.value = '';
    e.target.blur();
    found = null;
    drawHeader();
  } else if (e.key === 'Enter' && found?.length) {
    const to = found[0][2];
    e.target.value = '';
    e.target.blur();
    app.go(to);
  }
}

document.addEventListener('click', (e) => {
  const a = e.target.closest?.('a[href]');
  if (found && !e.target.closest?.('.find')) {
    found = null;
    drawHeader();
  }
  if (!a || e.defaultPrevented || e.button || e.metaKey || e.ctrlKey || e.shiftKey || a.target) return;
  const u = new URL(a.href);
  if (u.origin !== location.origin || !u.pathname.startsWith('/ui/')) return;
  e.preventDefault();
  app.go(u.pathname + u.search);
});
addEventListener('popstate', arrive);
let before = '';
document.addEventListener('keydown', (e) => {
  if (e.target.closest?.('input, textarea, select, [data-keys]') || e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === '/') {
    e.preventDefault();
    header.querySelector('input').focus();
  } else if (e.key === '?') {
    show(dialog, h('h2', {}, 'Keys'), h('dl', { class: 'facts' }, [['/', 'find'], ...NAV.map(([n, , k]) => [`g ${k}`, n]), ['?', 'these'], ['Esc', 'close']].map(([k, v]) => [h('dt', { class: 'mono' }, k), h('dd', {}, v)])));
    dialog.showModal();
  } else if (before === 'g') {
    const to = NAV.find(([, , k]) => k === e.key);
    if (to) app.go(to[1]);
  }
  before = e.key;
});
setInterval(() => {
  if (!document.hidden && data && !(document.activeElement && main.contains(document.activeElement) && document.activeElement.matches('input, textarea'))) render();
}, 15000);
addEventListener('resize', () => data && render());

async function start() {
  arrive();
  const [me, leader] = await Promise.all([maybe('/v1/agent/self', {}), get('/v1/jobs?per_page=1&namespace=*').catch(() => null)]);
  self = me || {};
  stream.index = Math.max(1, (leader?.index || 0) - 300);
  restart();
  drawHeader();
}
start();
