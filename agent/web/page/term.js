// SPDX-License-Identifier: Apache-2.0
// A shell in a task: a WebSocket, and as much of a VT100 as shells and editors need.
import { h, show } from './dom.js';
import { sessionToken } from './api.js';

const ROWS = 24;

class Screen {
  constructor(columns, rows) {
    Object.assign(this, { columns, rows, x: 0, y: 0, attr: '', top: 0, bottom: rows - 1, state: 'text', seq: '', saved: [0, 0], dirty: new Set(), cursor: true });
    this.lines = Array.from({ length: rows }, () => this.blank());
  }

  blank() {
    return Array.from({ length: this.columns }, () => [' ', '']);
  }

  scroll(by) {
    for (let n = Math.min(Math.abs(by), this.rows); n > 0; n--) {
      if (by > 0) {
        this.lines.splice(this.top, 1);
        this.lines.splice(this.bottom, 0, this.blank());
      } else {
        this.lines.splice(this.bottom, 1);
        this.lines.splice(this.top, 0, this.blank());
      }
    }
    for (let y = this.top; y <= this.bottom; y++) this.dirty.add(y);
  }

  down() {
    if (this.y === this.bottom) this.scroll(1);
    else if (this.y < this.rows - 1) this.y += 1;
  }

  put(ch) {
    if (this.x >= this.columns) {
      this.x = 0;
      this.down();
    }
    this.lines[this.y][this.x] = [ch, this.attr];
    this.dirty.add(this.y);
    this.x += 1;
  }

  write(text) {
    this.dirty.add(this.y);
    for (const ch of text) this.step(ch);
    this.dirty.add(this.y);
  }

  step(ch) {
    const c = ch.codePointAt(0);
    if (this.state === 'osc') {
      if (c === 7 || ch === '\\') this.state = 'text';
    } else if (this.state === 'esc') {
      this.state = 'text';
      if (ch === '[') [this.state, this.seq] = ['csi', ''];
      else if (ch === ']' || ch === 'P' || ch === '_' || ch === '^') this.state = 'osc';
      else if (ch === '(' || ch === ')') this.state = 'set';
      else if (ch === '7') this.saved = [this.x, this.y];
      else if (ch === '8') [this.x, this.y] = this.saved;
      else if (ch === 'M') this.y === this.top ? this.scroll(-1) : (this.y = Math.max(0, this.y - 1));
    } else if (this.state === 'set') this.state = 'text';
    else if (this.state === 'csi') {
      if (c >= 0x40 && c <= 0x7e) {
        this.state = 'text';
        this.command(ch);
      } else if (this.seq.length < 64) this.seq += ch;
    } else if (c === 27) this.state = 'esc';
    else if (ch === '\r') this.x = 0;
    else if (ch === '\n') this.down();
    else if (ch === '\b') this.x = Math.max(0, this.x - 1);
    else if (ch === '\t') this.x = Math.min(this.columns - 1, (this.x & ~7) + 8);
    else if (c >= 32 && c !== 127 && !(c >= 0x80 && c < 0xa0)) this.put(ch);
  }

  erase(y, from, to) {
    for (let x = from; x < to; x++) this.lines[y][x] = [' ', ''];
    this.dirty.add(y);
  }

  command(ch) {
    const n = this.seq.replace(/^[?>=!]/, '').split(';').map((v) => Math.min(Number(v) || 0, 9999));
    const one = Math.max(1, n[0]);
    const line = this.lines[this.y];
    this.dirty.add(this.y);
    if (this.seq.startsWith('?')) {
      if (n[0] === 25) this.cursor = ch === 'h';
      if (n[0] === 1049 || n[0] === 47) for (let y = 0; y < this.rows; y++) this.erase(y, 0, this.columns);
      return;
    }
    if (ch === 'A') this.y -= one;
    else if (ch === 'B' || ch === 'e') this.y += one;
    else if (ch === 'C' || ch === 'a') this.x += one;
    else if (ch === 'D') this.x -= one;
    else if (ch === 'G' || ch === '`') this.x = one - 1;
    else if (ch === 'd') this.y = one - 1;
    else if (ch === 'H' || ch === 'f') [this.y, this.x] = [one - 1, Math.max(1, n[1] || 1) - 1];
    else if (ch === 'J') for (let y = 0; y < this.rows; y++) {
      if (n[0] === 2 || n[0] === 3 || (n[0] === 0 ? y > this.y : y < this.y)) this.erase(y, 0, this.columns);
      else if (y === this.y) n[0] === 0 ? this.erase(y, this.x, this.columns) : this.erase(y, 0, Math.min(this.x + 1, this.columns));
    } else if (ch === 'K') this.erase(this.y, n[0] ? 0 : this.x, n[0] === 1 ? Math.min(this.x + 1, this.columns) : this.columns);
    else if (ch === 'X') this.erase(this.y, this.x, Math.min(this.columns, this.x + one));
    else if (ch === 'P') this.lines[this.y] = [...line.slice(0, this.x), ...line.slice(this.x + one), ...this.blank()].slice(0, this.columns);
    else if (ch === '@') this.lines[this.y] = [...line.slice(0, this.x), ...this.blank().slice(0, one), ...line.slice(this.x)].slice(0, this.columns);
    else if (ch === 'S') this.scroll(one);
    else if (ch === 'T') this.scroll(-one);
    else if (ch === 'L' || ch === 'M') {
      const top = this.top;
      this.top = this.y;
      this.scroll(ch === 'M' ? one : -one);
      this.top = top;
    } else if (ch === 'r') {
      [this.top, this.bottom] = [one - 1, Math.min(this.rows, n[1] || this.rows) - 1];
      if (this.top >= this.bottom) [this.top, this.bottom] = [0, this.rows - 1];
      this.x = this.y = 0;
    } else if (ch === 'm') this.color(n);
    this.x = Math.max(0, Math.min(this.columns - 1, this.x));
    this.y = Math.max(0, Math.min(this.rows - 1, this.y));
  }

  color(n) {
    for (let i = 0; i < n.length; i++) {
      const v = n[i];
      const set = new Set(this.attr ? this.attr.split(' ') : []);
      const only = (kind, value) => {
        for (const s of set) if (s.startsWith(kind)) set.delete(s);
        if (value) set.add(value);
      };
      if (v === 0) set.clear();
      else if (v === 1) set.add('bold');
      else if (v === 22) set.delete('bold');
      else if (v === 7) set.add('turn');
      else if (v === 27) set.delete('turn');
      else if (v === 38 || v === 48) i += n[i + 1] === 5 ? 2 : 4;
      else if (v >= 30 && v <= 37) only('c', `c${v - 30}`);
      else if (v >= 90 && v <= 97) only('c', `c${v - 90}`);
      else if (v === 39) only('c');
      this.attr = [...set].join(' ');
    }
  }

  row(y) {
    const runs = [];
    this.lines[y].forEach(([ch, attr], x) => {
      const a = this.cursor && x === Math.min(this.x, this.columns - 1) && y === this.y ? `${attr} here` : attr;
      if (runs.length && runs.at(-1)[1] === a) runs.at(-1)[0] += ch;
      else runs.push([ch, a]);
    });
    return h('div', {}, runs.map(([text, a]) => h('span', { class: a || null }, text)));
  }
}

const KEYS = { Enter: '\r', Backspace: '\x7f', Tab: '\t', Escape: '\x1b', ArrowUp: '\x1b[A', ArrowDown: '\x1b[B', ArrowRight: '\x1b[C', ArrowLeft: '\x1b[D', Home: '\x1b[H', End: '\x1b[F', Delete: '\x1b[3~', PageUp: '\x1b[5~', PageDown: '\x1b[6~' };
let open = null;

const encode = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));
const decode = (b64) => Uint8Array.from(atob(b64), (c) => c.charCodeAt(0));

// Opens a shell in the task, below the head of its page; null: ends the one that is open.
export function shell(a, task, app) {
  open?.close();
  open = null;
  const place = document.getElementById('terminal');
  if (!a || !place) return;
  const columns = Math.max(40, Math.min(160, Math.floor((place.clientWidth - 30) / 7.6)));
  const screen = new Screen(columns, ROWS);
  const command = encodeURIComponent(JSON.stringify(['/bin/sh']));
  const ws = new WebSocket(`${location.origin.replace(/^http/, 'ws')}/v1/client/allocation/${a.ID}/exec?task=${encodeURIComponent(task)}&tty=true&ws_handshake=true&command=${command}`);
  const say = (o) => ws.readyState === WebSocket.OPEN && ws.send(JSON.stringify(o));
  const text = new TextDecoder();
  let beat = 0;
  let drawn = false;
  const box = h('div', { class: 'term mono', tabindex: 0, role: 'textbox', 'aria-label': `shell in ${task}`, 'data-keys': true,
    onkeydown: (e) => {
      let t = KEYS[e.key];
      if (e.ctrlKey && e.key.length === 1 && /[a-z[\\\]]/i.test(e.key) && !(e.shiftKey && /[cv]/i.test(e.key))) t = String.fromCharCode(e.key.toUpperCase().charCodeAt(0) & 31);
      else if (e.key.length === 1 && !e.ctrlKey && !e.metaKey) t = (e.altKey ? '\x1b' : '') + e.key;
      if (t === undefined || (e.key === 'Tab' && e.shiftKey)) return;
      e.preventDefault();
      say({ stdin: { data: encode(t) } });
    },
    onpaste: (e) => {
      e.preventDefault();
      say({ stdin: { data: encode(e.clipboardData.getData('text').slice(0, 65536)) } });
    } });
  const state = h('span', {}, 'connects');
  const draw = () => {
    drawn = false;
    for (const y of screen.dirty) if (box.childNodes[y]) box.replaceChild(screen.row(y), box.childNodes[y]);
    screen.dirty.clear();
  };
  const later = () => {
    if (!drawn) requestAnimationFrame(draw);
    drawn = true;
  };
  for (let y = 0; y < ROWS; y++) box.append(screen.row(y));
  ws.onopen = () => {
    ws.send(JSON.stringify({ version: 1, auth_token: sessionToken() }));
    say({ tty_size: { height: ROWS, width: columns } });
    state.textContent = 'open';
    beat = setInterval(() => say({}), 10000);
    box.focus();
  };
  ws.onmessage = (e) => {
    const m = JSON.parse(e.data);
    for (const s of [m.stdout, m.stderr]) if (s?.data) screen.write(text.decode(decode(s.data), { stream: true }));
    if (m.exited) screen.write(`\r\n(ended with ${m.result?.exit_code ?? 0})`);
    later();
  };
  ws.onclose = (e) => {
    clearInterval(beat);
    state.textContent = e.reason ? `over: ${e.reason}` : 'over';
  };
  open = { close: () => {
    ws.onclose = null;
    clearInterval(beat);
    ws.close();
    show(place);
  } };
  show(place);
  place.append(h('section', { class: 'panel one', 'aria-label': 'Shell' }, h('div', { class: 'head' }, h('h2', {}, `Shell in ${task}`), h('span', {}, state, ' ', h('button', { class: 'link', onclick: () => shell(null) }, 'close'))), box));
  box.focus();
}
