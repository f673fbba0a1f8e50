// SPDX-License-Identifier: Apache-2.0
// A node: what it is, what runs on it, drain and eligibility.
import { h, panel } from './dom.js';
import { get, maybe, send } from './api.js';
import { num, plural, ago, clock, zoned, short, bytes, unescaped } from './words.js';
import { allocTable } from './job.js';

const q = encodeURIComponent;

async function load(at) {
  let id = unescaped(at.id.split('/')[0]);
  if (id.length < 36) id = (await get(`/v1/nodes?prefix=${q(id)}`))[0]?.ID || id;
  const [n, allocs, stats] = await Promise.all([get(`/v1/node/${q(id)}`), maybe(`/v1/allocations?namespace=*&resources=true&filter=${q(`NodeID == "${id}"`)}`, []),
    maybe(`/v1/client/stats?node_id=${q(id)}`, null).catch(() => null)]);
  return { n, allocs, stats: stats?.Memory ? stats : null };
}

const meter = (name, part, text) => [h('dt', {}, name), h('dd', {}, h('div', { class: 'bar', role: 'img', 'aria-label': `${name}: ${text}` }, h('i', { class: 'scale', style: { width: `${Math.min(100, 100 * part)}%` } })), text)];

function resources(d) {
  const r = d.n.NodeResources || {};
  const live = d.allocs.filter((a) => a.ClientStatus === 'running' || a.ClientStatus === 'pending');
  const sum = (fn) => live.reduce((s, a) => s + Object.values(a.AllocatedResources?.Tasks || {}).reduce((t, x) => t + (fn(x) || 0), 0), 0);
  const cpu = sum((t) => t.Cpu?.CpuShares);
  const mem = sum((t) => t.Memory?.MemoryMB);
  const kept = d.n.ReservedResources || {};
  const cpuMax = Math.max(1, (r.Cpu?.CpuShares || 0) - (kept.Cpu?.CpuShares || 0));
  const memMax = Math.max(1, (r.Memory?.MemoryMB || 0) - (kept.Memory?.MemoryMB || 0));
  const s = d.stats;
  const busy = s?.CPU?.length ? s.CPU.reduce((n, c) => n + c.TotalPercent, 0) / s.CPU.length : 0;
  return panel('What it has', s ? 'as its agent says now' : null, h('dl', { class: 'facts' },
    meter('allocated processor', cpu / cpuMax, `${num(cpu)} of ${num(cpuMax)} MHz`), meter('allocated memory', mem / memMax, `${num(mem)} of ${num(memMax)} MiB`),
    s ? [meter('processor in use', busy / 100, `${busy.toFixed(0)} %`), meter('memory in use', s.Memory.Used / s.Memory.Total, `${bytes(s.Memory.Used)} of ${bytes(s.Memory.Total)}`),
      s.AllocDirStats ? meter('disk in use', s.AllocDirStats.UsedPercent / 100, `${bytes(s.AllocDirStats.Used)} of ${bytes(s.AllocDirStats.Size)}`) : null] : null));
}

const facts = (title, map, side) => {
  const rows = Object.entries(map || {}).sort(([a], [b]) => (a < b ? -1 : 1));
  return panel(title, side || num(rows.length), rows.length ? h('dl', { class: 'facts' }, rows.map(([k, v]) => [h('dt', { class: 'mono' }, k), h('dd', {}, v)])) : h('p', { class: 'soft' }, 'None.'));
};

function view(d, at, app) {
  const { n } = d;
  const drains = !!n.DrainStrategy || n.Drain;
  const eligible = n.SchedulingEligibility !== 'ineligible';
  const live = d.allocs.filter((a) => a.ClientStatus === 'running' || a.ClientStatus === 'pending').sort((a, b) => b.CreateIndex - a.CreateIndex);
  const tone = n.Status !== 'ready' ? 'bad' : drains || !eligible ? 'waits' : 'good';
  const put = (what, body) => send('PUT', `/v1/node/${n.ID}/${what}`, { NodeID: n.ID, ...body });
  const isolation = Object.fromEntries(Object.entries(n.Attributes || {}).filter(([k]) => /^(isolation|paddock|kernel|os|plugins\.cgroup|cgroup)/.test(k)));
  return [
    h('div', { class: 'line' }, h('h1', {}, n.Name, ' ', h('span', { class: `chip ${tone}` }, n.Status !== 'ready' ? n.Status : drains ? 'draining' : eligible ? 'ready' : 'not eligible')),
      h('div', { class: 'acts' },
        drains ? h('button', { onclick: () => app.act(() => put('drain', { DrainSpec: null, MarkEligible: true })) }, 'End the drain')
          : h('button', { onclick: () => app.sure(`Drain ${n.Name}?`, `Moves ${plural(live.length, 'allocation')} to other nodes within an hour, and lets nothing new come.`, 'Drain', () => put('drain', { DrainSpec: { Deadline: 3600e9, IgnoreSystemJobs: false } })) }, 'Drain'),
        drains ? null : h('button', { onclick: () => app.act(() => put('eligibility', { Eligibility: eligible ? 'ineligible' : 'eligible' })) }, eligible ? 'Let nothing new come' : 'Let work come'))),
    h('p', { class: 'sub' }, `${n.Datacenter} · pool ${n.NodePool}${n.NodeClass ? ` · class ${n.NodeClass}` : ''} · ${n.HTTPAddr || ''} · `, h('span', { class: 'mono' }, short(n.ID)), n.StatusDescription ? ` · ${n.StatusDescription}` : '',
      n.StatusUpdatedAt ? h('span', { title: zoned(n.StatusUpdatedAt * 1000) }, ` · ${n.Status} for ${ago(n.StatusUpdatedAt * 1000)}`) : null),
    drains ? h('p', { class: 'note' }, `${plural(live.length, 'allocation')} left`, n.DrainStrategy?.ForceDeadline && !n.DrainStrategy.ForceDeadline.startsWith('0001') ? `; ends by force at ${clock(Date.parse(n.DrainStrategy.ForceDeadline))}` : '') : null,
    h('div', { class: 'one' }, panel('Allocations', num(live.length), allocTable(live.slice(0, 500), { job: true, node: false }))),
    h('div', { class: 'two' }, h('div', {}, resources(d), panel('Drivers', null, h('dl', { class: 'facts' }, Object.entries(n.Drivers || {}).map(([k, v]) => [h('dt', {}, k), h('dd', { class: v.Healthy ? 'good' : 'soft' }, v.Healthy ? '● ready' : v.HealthDescription || 'not there')])))),
      h('div', {}, panel('Events', null, h('ul', { class: 'times' }, [...(n.Events || [])].reverse().map((e) => h('li', {}, h('span', { 'aria-hidden': true }, '○'), h('time', {}, clock(Date.parse(e.Timestamp))), h('span', {}, e.Message))))), facts('Meta', n.Meta))),
    h('div', { class: 'two' }, h('div', {}, facts('Attributes', Object.fromEntries(Object.entries(n.Attributes || {}).filter(([k]) => !(k in isolation))))), h('div', {}, facts('Kernel and isolation', isolation))),
  ];
}

export const node = { title: 'Node', nav: 'Nodes', load, view, about: (e, at) => e.Topic === 'Node' ? e.Key.startsWith(at.id) : e.Topic === 'Allocation' && e.Payload?.Allocation?.NodeID === unescaped(at.id) };
