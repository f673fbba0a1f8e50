// SPDX-License-Identifier: Apache-2.0
// Trees of the page. Text becomes text nodes and nothing else; there is no other way in.
import { clean } from './words.js';

const SVG = new Set(['svg', 'path', 'line', 'polyline', 'g', 'rect', 'circle', 'text', 'title']);

// h('a', {href, class, onclick, ...}, children...): an element. `key` says which one it is in a list;
// `draw` is called with a canvas once it stands in the page.
export function h(tag, props, ...kids) {
  const svg = SVG.has(tag);
  const e = svg ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
  e.props = props || {};
  for (const [k, v] of Object.entries(e.props)) set(e, k, v);
  add(e, kids);
  return e;
}

function set(e, k, v) {
  if (k === 'key' || k === 'draw') return;
  if (k.startsWith('on')) e[k] = v;
  else if (k === 'style') for (const [name, value] of Object.entries(v)) e.style.setProperty(name, value);
  else if (k === 'value') e.value = v;
  else if (v === false || v === null || v === undefined) e.removeAttribute(k);
  else if (k === 'href' && !/^(\/|https?:|#)/.test(v)) e.removeAttribute(k); // no javascript: from anywhere
  else e.setAttribute(k, v === true ? '' : clean(v, 4000));
}

function add(e, kids) {
  for (const k of kids) {
    if (k === null || k === undefined || k === false) continue;
    if (Array.isArray(k)) add(e, k);
    else e.append(k instanceof Node ? k : clean(k));
  }
}

// Makes `old` look as `now` does, in place: focus, selection, scrolling and what is typed stay.
export function morph(old, now) {
  if (old.nodeType !== now.nodeType || old.nodeName !== now.nodeName || old.props?.key !== now.props?.key) {
    old.replaceWith(now);
    return;
  }
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== now.data) old.data = now.data;
    return;
  }
  if (old.props?.keep) return;
  for (const a of [...old.attributes]) if (!now.hasAttribute(a.name)) old.removeAttribute(a.name);
  for (const a of now.attributes) if (old.getAttribute(a.name) !== a.value && a.name !== 'style') old.setAttribute(a.name, a.value);
  if (old.getAttribute('style') !== now.getAttribute('style')) old.style.cssText = now.style.cssText;
  for (const k of Object.keys(old.props || {})) if (k.startsWith('on') && !(k in now.props)) old[k] = null;
  for (const [k, v] of Object.entries(now.props || {})) if (k.startsWith('on')) old[k] = v;
  if (old.props && now.props && 'value' in now.props && old.props.value !== now.props.value && old !== document.activeElement)
    old.value = now.props.value;
  old.props = now.props;
  fill(old, [...now.childNodes]);
}

export function fill(parent, kids) {
  const keyed = new Map();
  for (const c of parent.childNodes) if (c.props?.key !== undefined) keyed.set(c.props.key, c);
  let at = parent.firstChild;
  for (const now of kids) {
    const key = now.props?.key;
    const old = key !== undefined ? keyed.get(key) : at?.props?.key === undefined ? at : null;
    if (!old || old.nodeName !== now.nodeName) {
      parent.insertBefore(now, at);
      continue;
    }
    if (old !== at) parent.insertBefore(old, at);
    else at = at.nextSibling;
    morph(old, now);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

export function show(parent, ...kids) {
  const box = document.createDocumentFragment();
  add(box, kids);
  fill(parent, [...box.childNodes]);
  for (const c of parent.querySelectorAll('canvas')) c.props?.draw?.(c);
}

export const panel = (title, side, ...kids) => h('section', { class: 'panel', 'aria-label': title },
  h('div', { class: 'head' }, h('h2', {}, title), side ? h('span', {}, side) : null), kids);

export const link = (href, text, props) => h('a', { href, ...props }, text);

// A table of `columns` ({name, cell(row), sort?(row), n?}), sorted and filtered by the address.
export function table(rows, columns, { key, sort, address, empty, fresh } = {}) {
  let list = rows;
  const [by, down] = (sort || '').startsWith('-') ? [sort.slice(1), -1] : [sort || '', 1];
  const col = columns.find((c) => c.name === by && c.sort);
  if (col) {
    const keyed = rows.map((r) => [col.sort(r), r]);
    keyed.sort(([a], [b]) => (a < b ? -down : a > b ? down : 0));
    list = keyed.map(([, r]) => r);
  }
  if (!rows.length) return h('p', { class: 'soft' }, empty || 'None.');
  const head = (c) => {
    if (!c.sort || !address) return c.name;
    const on = c.name === by;
    const to = on && down > 0 ? `-${c.name}` : c.name;
    return link(address(to), c.name + (on ? (down > 0 ? ' ↑' : ' ↓') : ''), {});
  };
  const order = (c) => (c.name !== by || !col ? null : down > 0 ? 'ascending' : 'descending');
  return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': `table by ${columns[0].name}` }, h('table', {},
    h('thead', {}, h('tr', {}, columns.map((c) => h('th', { class: c.n ? 'n' : null, scope: 'col', 'aria-sort': order(c) }, head(c))))),
    h('tbody', {}, list.map((r) => h('tr', { key: key(r), class: fresh?.(r) ? 'new' : null },
      columns.map((c) => h('td', { class: c.n ? 'n' : null }, c.cell(r))))))));
}
