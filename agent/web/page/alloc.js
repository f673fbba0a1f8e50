// SPDX-License-Identifier: Apache-2.0
// An allocation: what it uses, its logs, what happened, its files.
import { h, panel, link, table } from './dom.js';
import { get, maybe, send, ask } from './api.js';
import { num, plural, ago, clock, zoned, span, ms, short, bytes, clean, unescaped, jobPath, nodePath, allocPath } from './words.js';
import { allocState } from './job.js';
import { shell } from './term.js';

const q = encodeURIComponent;
const POINTS = 60;
const LINES = 3000; // of a log that are kept
let samples = [];
let of = '';
let timer = 0;

const parts = (at) => {
  const [id, task, ...rest] = at.id.split('/').map(unescaped);
  return { id, task: task && task !== 'fs' ? task : '', files: task === 'fs' || rest[0] === 'fs' };
};

async function load(at) {
  const { id } = parts(at);
  const list = id.length < 36 ? await get(`/v1/allocations?prefix=${q(id)}&namespace=*`) : null;
  const a = await get(`/v1/allocation/${q(list?.[0]?.ID || id)}?namespace=*`);
  const path = at.query.get('path');
  const d = { a, live: a.ClientStatus === 'running' };
  if (path !== null) {
    d.files = await maybe(`/v1/client/fs/ls/${a.ID}?path=${q(path)}`, []);
    const file = at.query.get('file');
    if (file) d.text = await ask(`/v1/client/fs/readat/${a.ID}?path=${q(file)}&offset=0&limit=262144`, { raw: true }).then((r) => r.text()).catch((e) => `(${e.message})`);
  }
  return d;
}

async function sample(app, a) {
  clearTimeout(timer);
  if (!document.hidden) {
    const s = await maybe(`/v1/client/allocation/${a.ID}/stats`, null).catch(() => null);
    const r = s?.ResourceUsage;
    if (r && of === a.ID) {
      const tasks = Object.values(s.Tasks || {}).map((t) => t.ResourceUsage || {});
      const sum = (fn) => tasks.reduce((n, t) => n + (fn(t) || 0), 0);
      samples.push({ at: Date.now(), cpu: r.CpuStats?.TotalTicks || 0, mem: (r.MemoryStats?.Usage || r.MemoryStats?.RSS || 0) / 1048576,
        stall: Math.max(0, ...tasks.map((t) => t.PressureStats?.Memory?.SomeAvg10 || 0)), net: sum((t) => (t.NetworkStats?.TxBytes || 0) + (t.NetworkStats?.RxBytes || 0)) });
      samples = samples.slice(-POINTS - 1);
      app.render();
    }
  }
  if (of === a.ID) timer = setTimeout(() => sample(app, a), samples.length < 2 ? 1000 : 5000);
}

function chart(name, values, limit, text) {
  const max = Math.max(limit || 0, ...values, 1e-9) * 1.05;
  const x = (i) => (280 * (i + POINTS - values.length)) / (POINTS - 1);
  const y = (v) => 56 - (54 * v) / max;
  return h('div', {}, h('div', { class: 'soft' }, name), h('div', {}, text),
    h('svg', { viewBox: '0 0 280 58', role: 'img', 'aria-label': `${name}, the last ${span(values.length * 5000)}`, preserveAspectRatio: 'none', class: 'chart' },
      limit ? h('line', { x1: 0, x2: 280, y1: y(limit), y2: y(limit), class: 'limit' }) : null,
      values.length > 1 ? h('polyline', { points: values.map((v, i) => `${x(i).toFixed(1)},${y(v).toFixed(1)}`).join(' ') }) : null));
}

function charts(a) {
  const tasks = Object.values(a.AllocatedResources?.Tasks || {});
  const cpu = tasks.reduce((n, t) => n + (t.Cpu?.CpuShares || 0), 0);
  const mem = tasks.reduce((n, t) => n + (t.Memory?.MemoryMB || 0), 0);
  const last = samples.at(-1) || {};
  const net = samples.slice(1).map((s, i) => Math.max(0, (s.net - samples[i].net) / ((s.at - samples[i].at) / 1000)));
  const b = (v, rest) => [h('b', {}, v), ` ${rest}`];
  const fix = (v) => (v === undefined ? '-' : v < 10 ? v.toFixed(1) : num(Math.round(v)));
  return h('section', { class: 'panel one charts', 'aria-label': 'What it uses' },
    chart('Processor', samples.map((s) => s.cpu), cpu, b(fix(last.cpu), `of ${num(cpu)} MHz`)), chart('Memory', samples.map((s) => s.mem), mem, b(fix(last.mem), `of ${num(mem)} MiB`)),
    chart('Pressure, memory', samples.map((s) => s.stall), 0, b(fix(last.stall), '% stalled')), chart('Network', net, 0, b(bytes(net.at(-1) || 0), '/s')));
}

const log = { key: '', lines: [], box: null, stop: null, find: '', ends: true, rest: '', fresh: [] };
function logStop() {
  log.stop?.abort();
  log.stop = null;
  log.key = '';
}

const toneOf = (l) => (/\b(ERROR|FATAL|panic)\b/.test(l) ? 'bad' : /\bWARN/.test(l) ? 'waits' : null);
const fits = (l) => !log.find || l.toLowerCase().includes(log.find.toLowerCase());
function logDraw() {
  const box = log.box;
  if (!box?.isConnected) return;
  const ends = box.scrollHeight - box.scrollTop - box.clientHeight < 30;
  const more = log.fresh.splice(0).filter(fits).slice(-LINES);
  const some = document.createDocumentFragment();
  for (const l of more) some.append(h('div', { class: toneOf(l) }, clean(l, 4000) || ' '));
  box.append(some);
  while (box.childNodes.length > LINES) box.firstChild.remove();
  if (ends || log.jump) box.scrollTop = box.scrollHeight;
  log.jump = false;
}
function logAgain() {
  log.box.replaceChildren();
  log.fresh = [...log.lines];
  log.jump = true;
  requestAnimationFrame(logDraw);
}

async function logRun(a, task, type, live) {
  logStop();
  log.key = `${a.ID}/${task}/${type}/${live}`;
  const mine = new AbortController();
  Object.assign(log, { stop: mine, lines: [], fresh: [], rest: '', jump: true });
  log.box?.replaceChildren();
  try {
    const r = await ask(`/v1/client/fs/logs/${a.ID}?task=${q(task)}&type=${type}&follow=${live}&plain=true&origin=end&offset=65536`, { raw: true, signal: mine.signal });
    const reader = r.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const lines = (log.rest + value).split('\n');
      log.rest = lines.pop().slice(-65536);
      log.lines.push(...lines);
      log.fresh.push(...lines);
      if (log.lines.length > LINES) log.lines.splice(0, log.lines.length - LINES);
      if (log.fresh.length > LINES) log.fresh.splice(0, log.fresh.length - LINES);
      requestAnimationFrame(logDraw);
    }
    if (log.rest) {
      log.lines.push(log.rest);
      log.fresh.push(log.rest);
    }
  } catch (e) {
    if (mine.signal.aborted) return;
    log.fresh.push(`(${e.message})`);
  }
  requestAnimationFrame(logDraw);
}

function logs(d, at, app, tasks, task) {
  const type = at.query.get('log') === 'stderr' ? 'stderr' : 'stdout';
  const box = h('div', { class: 'log mono', tabindex: 0, role: 'log', 'aria-label': `${type} of ${task}`, key: 'log', keep: true });
  const here = allocPath(d.a.ID);
  const to = (t, ty) => `${here}/${q(t)}?log=${ty}`;
  queueMicrotask(() => {
    log.box = document.querySelector('.log');
    const key = `${d.a.ID}/${task}/${type}/${d.live}`;
    if (log.box && !document.hidden && log.key !== key) logRun(d.a, task, type, d.live);
  });
  return h('section', { class: 'panel', 'aria-label': 'Logs' }, h('div', { class: 'head' }, h('h2', {}, `Logs of ${task}`), h('span', { class: 'tabs' },
    tasks.length > 1 ? tasks.map((t) => link(to(t, type), t, { 'aria-current': t === task ? 'true' : null })) : null,
    ['stdout', 'stderr'].map((t) => link(to(task, t), t, { 'aria-current': t === type ? 'true' : null })),
    h('input', { type: 'search', placeholder: 'find', 'aria-label': 'find in the log', value: log.find, oninput: (e) => { log.find = e.target.value; logAgain(); } }))), box);
}

const endWords = (e, before) => {
  const ran = before ? `, ran ${span(ms(e.Time - before.Time))}` : '';
  const oom = e.Details?.oom_killed === 'true' ? ', out of memory' : '';
  return `ended: ${e.DisplayMessage || e.Type}${oom}${ran}`;
};
function happened(a) {
  const rows = [];
  for (const [task, s] of Object.entries(a.TaskStates || {})) {
    let began = null;
    for (const e of s.Events || []) {
      const bad = e.FailsTask || /Failure|Not Restarting|Failed/.test(e.Type) || (e.Type === 'Terminated' && (e.ExitCode || e.Signal));
      rows.push({ at: ms(e.Time), raw: e.Time, task, tone: bad ? 'bad' : e.Type === 'Started' ? 'good' : 'soft', text: e.Type === 'Terminated' ? endWords(e, began) : e.DisplayMessage || e.Type });
      if (e.Type === 'Started') began = e;
    }
  }
  const many = Object.keys(a.TaskStates || {}).length > 1;
  rows.sort((x, y) => y.raw - x.raw);
  return panel('What happened', null, rows.length ? h('ul', { class: 'times' }, rows.map((r) => h('li', { key: `${r.raw}/${r.task}/${r.text}` }, h('span', { class: r.tone, 'aria-hidden': true }, '○'), h('time', { title: zoned(r.at) }, clock(r.at)), h('span', {}, many ? `${r.task}: ` : '', r.text)))) : h('p', { class: 'soft' }, 'Nothing yet.'));
}

function files(d, at) {
  const path = at.query.get('path') || '/';
  const here = `${allocPath(d.a.ID)}/fs?path=`;
  const below = (name) => `${path.replace(/\/$/, '')}/${name}`;
  const file = at.query.get('file');
  return panel('Files', path, table([...(path === '/' ? [] : [{ up: true, IsDir: true, Name: '..' }]), ...(d.files || [])], [
    { name: 'Name', cell: (f) => (f.up ? link(here + q(path.replace(/\/[^/]*\/?$/, '') || '/'), '..') : link(f.IsDir ? here + q(below(f.Name)) : `${here}${q(path)}&file=${q(below(f.Name))}`, f.Name + (f.IsDir ? '/' : ''))) },
    { name: 'Size', n: true, cell: (f) => (f.IsDir ? '' : bytes(f.Size)) },
    { name: 'Mode', cell: (f) => h('span', { class: 'mono' }, f.FileMode || '') },
    { name: 'Changed', n: true, cell: (f) => (f.ModTime ? `${ago(Date.parse(f.ModTime))} ago` : '') },
  ], { key: (f) => f.Name, empty: 'Nothing, or its directory is gone.' }), file ? h('pre', { class: 'box' }, clean(d.text || '', 262144)) : null);
}

function view(d, at, app) {
  const { a } = d;
  const { task: wanted, files: wantsFiles } = parts(at);
  const tasks = Object.keys(a.TaskStates || a.AllocatedResources?.Tasks || {});
  const task = tasks.includes(wanted) ? wanted : tasks[0];
  const ports = (a.AllocatedResources?.Shared?.Ports || []).map((p) => `${p.HostIP}:${p.Value} (${p.Label})`).join(', ');
  if (d.live && of !== a.ID) {
    of = a.ID;
    samples = [];
    sample(app, a);
  }
  const does = (verb, body, said) => () => app.act(() => send('PUT', verb, body), said);
  const over = ['complete', 'failed', 'lost'].includes(a.ClientStatus) || a.DesiredStatus !== 'run';
  return [
    h('p', {}, link(jobPath(a.JobID, a.Namespace), a.JobID), ' / ', a.Name.slice(a.JobID.length + 1)),
    h('div', { class: 'line' }, h('h1', {}, h('span', { class: 'mono big' }, short(a.ID)), ' ', h('span', { class: 'chip' }, allocState(a))),
      over ? null : h('div', { class: 'acts' },
        h('button', { onclick: () => app.sure(`Restart the tasks of ${a.Name}?`, `${plural(tasks.length, 'task')} on ${a.NodeName} ends and begins again.`, 'Restart', () => send('PUT', `/v1/client/allocation/${a.ID}/restart`, {})) }, 'Restart'),
        h('button', { onclick: () => app.sure(`Stop ${a.Name}?`, 'It ends, and the servers place another one where the job asks for it.', 'Stop', () => send('PUT', `/v1/allocation/${a.ID}/stop`)) }, 'Stop'),
        d.live ? h('button', { class: 'main', onclick: () => shell(a, task, app) }, 'Open a shell') : null)),
    h('p', { class: 'sub' }, 'on ', link(nodePath(a.NodeID), a.NodeName || short(a.NodeID)), ` · version ${a.Job?.Version ?? '?'} · ${ago(ms(a.CreateTime))} old${ports ? ` · ${ports}` : ''}`, a.DesiredDescription ? ` · ${a.DesiredDescription}` : '',
      a.NextAllocation ? [' · followed by ', link(allocPath(a.NextAllocation), short(a.NextAllocation))] : null, a.PreviousAllocation ? [' · after ', link(allocPath(a.PreviousAllocation), short(a.PreviousAllocation))] : null),
    h('nav', { class: 'tabs', 'aria-label': 'parts of the allocation' }, link(allocPath(a.ID), 'overview', { 'aria-current': wantsFiles ? null : 'page' }), link(`${allocPath(a.ID)}/fs?path=%2F`, 'files', { 'aria-current': wantsFiles ? 'page' : null })),
    h('div', { id: 'terminal', key: 'terminal', keep: true }),
    wantsFiles ? h('div', { class: 'one' }, files(d, at)) : [d.live ? charts(a) : null,
      h('div', { class: 'two' }, h('div', {}, task ? logs(d, at, app, tasks, task) : null), h('div', {}, happened(a)))],
  ];
}

function leave() {
  logStop();
  log.find = '';
  of = '';
  clearTimeout(timer);
  shell(null);
}
document.addEventListener('visibilitychange', () => document.hidden && logStop());

export const alloc = { title: 'Allocation', nav: 'Jobs', name: (at) => short(at.id), load, view, leave, about: (e, at) => e.Topic === 'Allocation' && e.Key.startsWith(parts(at).id) };
