// SPDX-License-Identifier: Apache-2.0
// Nodes as cells of a map: colour is one measure in five steps, state is a shape.
import { h, link } from './dom.js';
import { num, plural, nodePath } from './words.js';

const STEPS = [0.25, 0.5, 0.75, 0.9];
const MEASURES = { memory: 'allocated memory', processor: 'allocated processor' };
const CELLS = 2400; // above that a cell is a group of nodes
let hover = -1;

// Adds up what runs on each node: {memory, processor} as a part of what the node has, and a count.
function usage(d) {
  const of = new Map(d.nodes.map((n) => [n.ID, { n, mem: 0, cpu: 0, count: 0 }]));
  for (const a of d.allocs) {
    const u = of.get(a.NodeID);
    if (!u) continue;
    u.count += 1;
    for (const t of Object.values(a.AllocatedResources?.Tasks || {})) {
      u.mem += t.Memory?.MemoryMB || 0;
      u.cpu += t.Cpu?.CpuShares || 0;
    }
  }
  for (const u of of.values()) {
    const r = u.n.NodeResources || {};
    const kept = u.n.ReservedResources || {};
    u.memMax = Math.max(1, (r.Memory?.MemoryMB || 0) - (kept.Memory?.MemoryMB || 0));
    u.cpuMax = Math.max(1, (r.Cpu?.CpuShares || 0) - (kept.Cpu?.CpuShares || 0));
    u.memory = u.mem / u.memMax;
    u.processor = u.cpu / u.cpuMax;
  }
  return [...of.values()];
}

function state(n) {
  if (n.Status === 'down' || n.Status === 'disconnected') return 'down';
  if (n.Drain) return 'draining';
  if (n.SchedulingEligibility === 'ineligible') return 'not eligible';
  return n.Status === 'ready' ? 'ready' : n.Status;
}

// Groups by what tells the machines apart.
function grouped(list) {
  const keys = [(n) => n.Meta?.rack, (n) => n.Datacenter, (n) => n.NodePool, (n) => n.NodeClass];
  const by = keys.find((k) => new Set(list.map((u) => k(u.n) || '')).size > 1) || keys[1];
  const groups = new Map();
  for (const u of [...list].sort((a, b) => (a.n.Name < b.n.Name ? -1 : 1))) {
    const k = by(u.n) || '-';
    if (!groups.has(k)) groups.set(k, []);
    groups.get(k).push(u);
  }
  return [...groups].sort(([a], [b]) => (a < b ? -1 : 1)).slice(0, 60);
}

// Cells of one node, or of several where there are too many; the worst state of them is shown.
function cells(list, per) {
  const out = [];
  for (let i = 0; i < list.length; i += per) {
    const us = list.slice(i, i + per);
    const worst = us.find((u) => state(u.n) === 'down') || us.find((u) => state(u.n) !== 'ready') || us[0];
    out.push({ us, n: worst.n, state: state(worst.n), memory: us.reduce((s, u) => s + u.memory, 0) / us.length, processor: us.reduce((s, u) => s + u.processor, 0) / us.length });
  }
  return out;
}

function layout(d, width) {
  const groups = grouped(usage(d));
  const per = Math.max(1, Math.ceil(d.nodes.length / CELLS));
  const left = groups.length > 1 ? 74 : 0;
  const all = groups.map(([name, list]) => [name, cells(list, per)]);
  const rows = (size) => all.reduce((s, [, c]) => s + Math.ceil(c.length / Math.max(1, Math.floor((width - left) / size))), 0);
  let size = 28;
  while (size > 9 && rows(size) * size > 330) size -= 1;
  const across = Math.max(1, Math.floor((width - left) / size));
  let y = 0;
  const placed = [];
  const labels = [];
  for (const [name, list] of all) {
    labels.push([name, y]);
    list.forEach((c, i) => placed.push({ ...c, x: left + (i % across) * size, y: y + Math.floor(i / across) * size }));
    y += Math.ceil(list.length / across) * size;
  }
  return { placed, labels: groups.length > 1 ? labels : [], size, across, height: Math.max(y, size) };
}

const step = (v) => STEPS.filter((s) => v >= s).length;

function draw(canvas, d, measure) {
  const width = canvas.clientWidth || 600;
  const l = layout(d, width);
  const scale = devicePixelRatio || 1;
  const css = getComputedStyle(document.documentElement);
  const color = (name) => css.getPropertyValue(name).trim();
  const colors = [0, 1, 2, 3, 4].map((i) => color(`--s${i}`));
  canvas.style.height = `${l.height}px`;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(l.height * scale);
  const g = canvas.getContext('2d');
  g.scale(scale, scale);
  g.font = '12px system-ui, sans-serif';
  g.fillStyle = color('--soft');
  for (const [name, y] of l.labels) g.fillText(name.length > 10 ? `${name.slice(0, 9)}…` : name, 0, y + Math.min(l.size - 3, 15));
  const s = l.size - (l.size > 14 ? 3 : 1);
  l.placed.forEach((c, i) => {
    g.fillStyle = c.state === 'down' ? color('--bad-bg') : c.state === 'not eligible' ? color('--panel') : colors[step(c[measure])];
    g.fillRect(c.x, c.y, s, s);
    g.lineWidth = 1.5;
    if (c.state === 'not eligible') {
      g.strokeStyle = color('--soft');
      g.strokeRect(c.x + 1, c.y + 1, s - 2, s - 2);
    } else if (c.state === 'down') {
      g.strokeStyle = color('--bad');
      g.beginPath();
      for (const [a, b] of [[0.3, 0.7], [0.7, 0.3]]) {
        g.moveTo(c.x + s * a, c.y + s * 0.3);
        g.lineTo(c.x + s * b, c.y + s * 0.7);
      }
      g.stroke();
    } else if (c.state === 'draining') {
      g.strokeStyle = color('--panel');
      g.beginPath();
      for (let k = 0; k < s; k += 5) {
        g.moveTo(c.x + k, c.y + s);
        g.lineTo(c.x + s, c.y + k);
        g.moveTo(c.x, c.y + k);
        g.lineTo(c.x + k, c.y);
      }
      g.stroke();
    }
    if (i === hover) {
      g.strokeStyle = color('--ink');
      g.lineWidth = 2;
      g.strokeRect(c.x, c.y, s, s);
    }
  });
  canvas.layout = l;
}

function told(c) {
  const pct = (v) => `${Math.round(100 * v)} %`;
  if (c.us.length > 1) return `${plural(c.us.length, 'node')}: memory ${pct(c.memory)}, processor ${pct(c.processor)}`;
  const u = c.us[0];
  return `${u.n.Name}: ${c.state}, ${plural(u.count, 'allocation')}, memory ${num(u.mem)} of ${num(u.memMax)} MiB (${pct(u.memory)}), processor ${num(u.cpu)} of ${num(u.cpuMax)} MHz`;
}

export function heat(d, at, app) {
  const measure = at.query.get('measure') in MEASURES ? at.query.get('measure') : 'memory';
  const line = () => document.getElementById('cell');
  const point = (canvas, i) => {
    hover = i;
    draw(canvas, d, measure);
    if (line()) line().textContent = i >= 0 && canvas.layout.placed[i] ? told(canvas.layout.placed[i]) : '';
  };
  const move = (e) => {
    const l = e.target.layout;
    const s = l.placed.findIndex((c) => e.offsetX >= c.x && e.offsetX < c.x + l.size && e.offsetY >= c.y && e.offsetY < c.y + l.size);
    e.target.style.cursor = s >= 0 ? 'pointer' : '';
    if (s !== hover) point(e.target, s);
  };
  const open = (e) => e.target.layout.placed[hover] && app.go(nodePath(e.target.layout.placed[hover].n.ID));
  const keys = (e) => {
    const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: e.target.layout.across, ArrowUp: -e.target.layout.across }[e.key];
    if (e.key === 'Enter') open(e);
    if (!by) return;
    e.preventDefault();
    point(e.target, Math.max(0, Math.min(e.target.layout.placed.length - 1, hover + by)));
  };
  const down = d.nodes.filter((n) => state(n) === 'down');
  return h('section', { class: 'panel', 'aria-label': 'Nodes' },
    h('div', { class: 'head' }, h('h2', {}, 'Nodes'), h('span', {}, Object.entries(MEASURES).flatMap(([k, text], i) => [i ? ' · ' : '', k === measure ? text : link(`/ui/?measure=${k}`, text)]))),
    d.nodes.length ? h('canvas', { tabindex: 0, role: 'application', 'aria-label': `${plural(d.nodes.length, 'node')}, ${num(down.length)} down${down.length ? `: ${down.slice(0, 10).map((n) => n.Name).join(', ')}` : ''}; arrow keys go from node to node`, 'data-keys': true,
      draw: (c) => draw(c, d, measure), onmousemove: move, onmouseleave: (e) => point(e.target, -1), onclick: open, onkeydown: keys }) : h('p', { class: 'soft' }, 'No node has joined yet: an agent with client { enabled = true } does.'),
    h('div', { id: 'cell', class: 'legend', role: 'status', 'aria-live': 'polite', keep: true }),
    d.many ? h('p', { class: 'soft' }, 'Too many allocations to add up: cells show states alone.') : null,
    h('div', { class: 'legend' }, ['< 25 %', '50', '75', '90', 'full'].map((t, i) => h('span', {}, h('b', { class: `s${i}` }), t)), h('span', {}, '╱ draining'), h('span', { class: 'bad' }, '✕ down'), h('span', {}, '□ not eligible')));
}
