// SPDX-License-Identifier: Apache-2.0
// A job: why it is not placed, its groups, its deployment, allocations, evaluations, versions.
import { h, panel, link, table } from './dom.js';
import { get, maybe, send } from './api.js';
import { edit, editor } from './edit.js';
import { num, plural, ago, clock, zoned, ms, short, unescaped, jobPath, allocPath, nodePath } from './words.js';
import { deploymentRow, evalCause } from './overview.js';

const q = encodeURIComponent;
const TABS = ['overview', 'allocations', 'evaluations', 'versions', 'definition'];

// "web@default/versions" to its parts; an id may hold slashes, and Nomad's addresses need no namespace.
export function parts(at) {
  const words = at.id.split('/').map(unescaped);
  const tab = words.length > 1 && TABS.includes(words.at(-1)) ? words.pop() : 'overview';
  const id = words.join('/');
  const m = id.match(/^(.*)@([^@/]*)(?:\/.*)?$/);
  return { id: m ? m[1] : id, ns: m ? m[2] : at.query.get('namespace') || 'default', tab };
}

async function load(at) {
  const { id, ns } = parts(at);
  const base = `/v1/job/${q(id)}`;
  const end = `namespace=${q(ns)}`;
  const [job, summary, allocs, evals, deployments] = await Promise.all([
    get(`${base}?${end}`), maybe(`${base}/summary?${end}`, {}), maybe(`${base}/allocations?${end}`, []), maybe(`${base}/evaluations?${end}`, []), maybe(`${base}/deployments?${end}`, [])]);
  const d = { job, summary, allocs, evals, deployments, ns: job.Namespace };
  d.queued = Object.entries(summary.Summary || {}).filter(([, s]) => s.Queued > 0);
  d.explain = d.queued.length ? await maybe(`${base}/explain?${end}`, null) : null;
  if (parts(at).tab === 'versions') d.versions = await maybe(`${base}/versions?${end}&diffs=true`, {});
  if (parts(at).tab === 'definition') {
    d.source = await maybe(`${base}/submission?${end}&version=${job.Version}`, null) || { Format: 'json', Source: JSON.stringify(job, null, 2) };
    edit(`${ns}/${id}`, d.source.Source);
  }
  return d;
}

// The funnel: how many nodes are left behind each reason, the largest first.
function funnel(group, missing, e) {
  let left = group.Nodes;
  const max = Math.max(1, group.Nodes);
  const bars = [['nodes looked at', left, 0]];
  for (const r of (group.Reasons || []).filter((x) => !x.Fits)) {
    left -= r.Count;
    bars.push([r.Reason, left, r.Count, r.Nodes]);
  }
  const fits = (group.Reasons || []).filter((r) => r.Fits);
  const details = [...new Set((group.Reasons || []).filter((r) => !r.Fits).flatMap((r) => (r.Nodes || []).map((n) => n.Detail && `${n.Name}: ${n.Detail}`)).filter(Boolean))].slice(0, 4);
  const said = fits.reduce((n, r) => n + r.Count, 0);
  return panel(`Why ${num(missing)} of ${group.Name} ${missing === 1 ? 'is' : 'are'} not placed`, e ? ['evaluation ', short(e.ID), `, ${ago(ms(e.ModifyTime))} ago`] : null,
    h('div', { class: 'funnel' }, bars.map(([why, n, lost]) => [h('div', {}, why), h('div', { class: 'track' }, h('i', { style: { width: `${(100 * n) / max}%` } })), h('div', {}, num(n), ' ', lost ? h('span', { class: 'bad' }, `−${num(lost)}`) : null)])),
    said ? h('p', { class: 'help' }, `${plural(said, 'node')} would take one more now: `, fits.flatMap((r) => r.Nodes || []).slice(0, 5).map((n) => n.Name).join(', ')) : null,
    details.length ? h('p', { class: 'help' }, h('b', {}, 'Nearest: '), details.join(' · ')) : null);
}

function failedPanel(e) {
  const rows = Object.keys(e.FailedTGAllocs || {}).map((g) => [g, evalCause(e, g)]);
  return rows.length ? panel('What the last evaluation could not place', null, h('dl', { class: 'facts' }, rows.map(([g, t]) => [h('dt', {}, g), h('dd', {}, t)]))) : null;
}

export const allocTone = (a) => ({ running: 'good', pending: 'waits', failed: 'bad', lost: 'bad', unknown: 'waits' }[a.ClientStatus] || 'soft');
export const allocState = (a) => {
  const sick = a.DeploymentStatus?.Healthy === false ? ', not healthy' : '';
  const ends = a.DesiredStatus !== 'run' && (a.ClientStatus === 'running' || a.ClientStatus === 'pending') ? ', stopping' : '';
  return h('span', { class: allocTone(a) }, { good: '● ', waits: '◐ ', bad: '✕ ', soft: '○ ' }[allocTone(a)], a.ClientStatus, sick, ends);
};
export const restarts = (a) => Object.values(a.TaskStates || {}).reduce((n, t) => n + (t.Restarts || 0), 0);

export const allocTable = (allocs, more = {}) => table(allocs, [
  { name: 'Allocation', cell: (a) => link(allocPath(a.ID), short(a.ID), { class: 'mono' }) },
  { name: 'Name', sort: (a) => a.Name, cell: (a) => (more.job ? a.Name : a.Name.slice(a.JobID.length + 1)) },
  { name: 'State', sort: (a) => a.ClientStatus, cell: allocState },
  ...(more.node === false ? [] : [{ name: 'Node', sort: (a) => a.NodeName, cell: (a) => link(nodePath(a.NodeID), a.NodeName || short(a.NodeID)) }]),
  { name: 'Version', n: true, sort: (a) => a.JobVersion, cell: (a) => a.JobVersion },
  { name: 'Age', n: true, sort: (a) => -a.CreateTime, cell: (a) => ago(ms(a.CreateTime)) },
  { name: 'Restarts', n: true, sort: (a) => -restarts(a), cell: (a) => restarts(a) },
], { key: (a) => a.ID, fresh: (a) => Date.now() - ms(a.ModifyTime) < 1500, empty: 'No allocation.', ...more });

const evalTable = (evals) => table([...evals].sort((a, b) => b.ModifyIndex - a.ModifyIndex).slice(0, 200), [
  { name: 'Evaluation', cell: (e) => h('span', { class: 'mono' }, short(e.ID)) },
  { name: 'Why', cell: (e) => e.TriggeredBy },
  { name: 'Status', cell: (e) => h('span', { class: e.Status === 'blocked' ? 'waits' : e.Status === 'failed' ? 'bad' : '' }, e.Status, e.StatusDescription ? `: ${e.StatusDescription}` : '') },
  { name: 'Not placed', cell: (e) => Object.keys(e.FailedTGAllocs || {}).join(', ') || '-' },
  { name: 'When', n: true, cell: (e) => `${ago(ms(e.ModifyTime))} ago` },
], { key: (e) => e.ID, empty: 'No evaluation is kept.' });

function groups(d) {
  const s = d.summary.Summary || {};
  return table(d.job.TaskGroups || [], [
    { name: 'Group', cell: (g) => g.Name },
    { name: 'Asked', n: true, cell: (g) => num(g.Count) },
    { name: 'Now', cell: (g) => {
      const v = s[g.Name] || {};
      const all = Math.max(1, (v.Running || 0) + (v.Starting || 0) + (v.Queued || 0) + (v.Unknown || 0));
      const w = (n) => ({ width: `${(100 * (n || 0)) / all}%` });
      const words = [['Running', 'run'], ['Starting', 'start'], ['Queued', 'wait'], ['Unknown', 'are away'], ['Failed', 'failed'], ['Lost', 'lost'], ['Complete', 'complete']].filter(([k]) => v[k]).map(([k, t]) => `${num(v[k])} ${t}`);
      return [h('div', { class: 'bar' }, h('i', { class: 'good', style: w(v.Running) }), h('i', { class: 'starts', style: w(v.Starting) }), h('i', { class: 'bad', style: w(v.Queued) }), h('i', { class: 'waits', style: w(v.Unknown) })), words.join(', ') || 'none'];
    } },
    { name: 'Processor', n: true, cell: (g) => `${num(sum(g, 'CPU'))} MHz` },
    { name: 'Memory', n: true, cell: (g) => `${num(sum(g, 'MemoryMB'))} MiB` },
  ], { key: (g) => g.Name });
}
const sum = (g, what) => (g.Tasks || []).reduce((n, t) => n + (t.Resources?.[what] || 0), 0);

export function diffLines(diff, depth = 0, out = []) {
  const mark = { Added: '+', Deleted: '−', Edited: '±', None: ' ' };
  const pad = '  '.repeat(depth);
  const tone = (t) => ({ Added: 'good', Deleted: 'bad', Edited: 'waits' }[t] || 'soft');
  for (const f of diff.Fields || []) {
    if (f.Type === 'None') continue;
    const text = f.Type === 'Edited' ? `"${f.Old}" → "${f.New}"` : `"${f.Type === 'Deleted' ? f.Old : f.New}"`;
    out.push(h('div', { class: tone(f.Type) }, `${pad}${mark[f.Type]} ${f.Name}: ${text}${f.Annotations?.length ? ` (${f.Annotations.join(', ')})` : ''}`));
  }
  for (const [kids, word] of [[diff.Objects, ''], [diff.TaskGroups, 'group '], [diff.Tasks, 'task ']])
    for (const o of kids || []) {
      if (o.Type === 'None') continue;
      out.push(h('div', { class: tone(o.Type) }, `${pad}${mark[o.Type]} ${word}${o.Name}`, o.Updates ? ` (${Object.entries(o.Updates).map(([k, n]) => `${n} ${k}`).join(', ')})` : ''));
      diffLines(o, depth + 1, out);
    }
  return out;
}

function versions(d, app) {
  const revert = (v) => app.sure(`Go back to version ${v}?`, `Runs ${d.job.ID} as it was in version ${v}, as a new version.`, 'Revert', () => send('PUT', `/v1/job/${q(d.job.ID)}/revert?namespace=${q(d.ns)}`, { JobID: d.job.ID, JobVersion: v, EnforcePriorVersion: d.job.Version }));
  const list = d.versions?.Versions || [];
  const diffs = d.versions?.Diffs || [];
  return list.map((v, i) => h('section', { class: 'panel one', key: `v${v.Version}` }, h('div', { class: 'head' }, h('h2', {}, `Version ${v.Version}`, v.Version === d.job.Version ? ', this one ' : ' ', v.Version === d.job.Version ? null : h('button', { onclick: () => revert(v.Version) }, 'Revert to it')), h('span', { title: zoned(ms(v.SubmitTime)) }, `${clock(ms(v.SubmitTime))}${v.Stable ? ' · stable' : ''}${v.VersionTag ? ` · ${v.VersionTag.Name}` : ''}`)),
    diffs[i] ? h('pre', {}, diffLines(diffs[i])) : h('p', { class: 'soft' }, 'The oldest that is kept.')));
}

// What a person can do with the job; each asks for what it needs.
function actions(d, app) {
  const { job: j, ns } = d;
  const base = `/v1/job/${q(j.ID)}`;
  const end = `namespace=${q(ns)}`;
  const live = d.allocs.filter((a) => a.ClientStatus === 'running' || a.ClientStatus === 'pending');
  const nodes = new Set(live.map((a) => a.NodeID)).size;
  const scale = (g) => (e) => {
    e.preventDefault();
    const count = Number(e.target.elements.count.value);
    app.act(() => send('PUT', `${base}/scale?${end}`, { Target: { Job: j.ID, Namespace: ns, Group: g.Name }, Count: count, Message: 'by the page' }), `${g.Name} is to have ${num(count)}.`);
  };
  const scaling = j.Stop || j.Type === 'system' || j.ParameterizedJob || j.Periodic ? [] : (j.TaskGroups || []).slice(0, 20);
  return [h('div', { class: 'acts' },
    j.Periodic && !j.Stop ? h('button', { onclick: () => app.act(() => send('PUT', `${base}/periodic/force?${end}`), 'Started once more.') }, 'Start now') : null,
    j.Stop ? h('button', { onclick: () => app.act(() => send('PUT', `/v1/jobs?${end}`, { Job: { ...j, Stop: false } }), 'Started.') }, 'Start')
      : h('button', { onclick: () => app.sure(`Stop ${j.ID}?`, `Stops ${plural(live.length, 'allocation')} of ${j.ID} on ${plural(nodes, 'node')}.`, 'Stop', () => send('DELETE', `${base}?${end}`)) }, 'Stop'),
    link(`${jobPath(j.ID, ns)}/definition`, 'Edit and plan', { class: 'button main' })),
  { scaling: scaling.length ? scaling.map((g) => h('form', { class: 'line', key: g.Name, onsubmit: scale(g) }, h('label', {}, `${g.Name} `, h('input', { type: 'number', name: 'count', min: 0, max: 100000, value: g.Count })), h('button', {}, 'Scale'))) : null }];
}

function dispatch(d, app) {
  const p = d.job.ParameterizedJob;
  if (!p || d.job.Stop) return null;
  const keys = [...(p.MetaRequired || []), ...(p.MetaOptional || [])];
  const go = (e) => {
    e.preventDefault();
    const f = e.target.elements;
    const meta = Object.fromEntries(keys.map((k) => [k, f[`meta-${k}`].value]).filter(([, v]) => v));
    const bytes = f.payload?.value ? btoa(String.fromCharCode(...new TextEncoder().encode(f.payload.value))) : null;
    app.act(() => send('PUT', `/v1/job/${q(d.job.ID)}/dispatch?namespace=${q(d.ns)}`, { Payload: bytes, Meta: meta }), 'Dispatched.');
  };
  return panel('Dispatch', null, h('form', { onsubmit: go }, keys.map((k) => h('p', {}, h('label', {}, `${k} `, h('input', { name: `meta-${k}`, required: (p.MetaRequired || []).includes(k) })))),
    p.Payload === 'forbidden' ? null : h('label', {}, 'Payload', h('textarea', { name: 'payload', class: 'small' })), h('button', { class: 'main' }, 'Dispatch')));
}

function view(d, at, app) {
  const { id, ns, tab } = parts(at);
  const j = d.job;
  const running = Object.values(d.summary.Summary || {}).reduce((n, s) => n + (s.Running || 0), 0);
  const asked = (j.TaskGroups || []).reduce((n, g) => n + g.Count, 0);
  const chip = j.Stop ? ['', 'stopped'] : d.queued.length ? ['bad', `${num(running)} of ${num(asked)} running`] : j.Status === 'dead' ? ['', 'dead'] : ['good', j.Type === 'service' ? `${num(running)} of ${num(asked)} running` : j.Status];
  const current = d.deployments.toSorted((a, b) => b.CreateIndex - a.CreateIndex)[0];
  const blocked = d.evals.find((e) => e.Status === 'blocked');
  const live = d.allocs.filter((a) => a.DesiredStatus === 'run' || a.ClientStatus === 'running').toSorted((a, b) => b.CreateIndex - a.CreateIndex);
  const all = at.query.get('all') || tab === 'allocations';
  const [acts, { scaling }] = actions(d, app);
  const out = [
    h('div', { class: 'line' }, h('h1', {}, j.ID, ' ', h('span', { class: `chip ${chip[0]}` }, chip[1])), acts),
    h('p', { class: 'sub' }, `${j.Type} · priority ${j.Priority} · namespace ${j.Namespace} · version ${j.Version}, `, h('span', { title: zoned(ms(j.SubmitTime)) }, clock(ms(j.SubmitTime))), j.ParentID ? [' · of ', link(jobPath(j.ParentID, ns), j.ParentID)] : null),
    h('nav', { class: 'tabs', 'aria-label': 'parts of the job' }, TABS.map((t) => link(t === 'overview' ? jobPath(id, ns) : `${jobPath(id, ns)}/${t}`, t, { 'aria-current': t === tab ? 'page' : null }))),
  ];
  if (tab === 'versions') return [...out, versions(d, app)];
  if (tab === 'definition') return [...out, h('div', { class: 'one' }, editor(app))];
  if (tab === 'evaluations') return [...out, h('div', { class: 'one' }, panel('Evaluations', null, evalTable(d.evals)))];
  const allocations = panel('Allocations', tab === 'overview' ? link(`${jobPath(id, ns)}/allocations`, 'show ended') : 'newest first', allocTable((all ? d.allocs.toSorted((a, b) => b.CreateIndex - a.CreateIndex) : live).slice(0, 500)));
  if (tab === 'allocations') return [...out, h('div', { class: 'one' }, allocations)];
  return [...out,
    h('div', { class: 'one' }, d.queued.map(([g, s]) => {
      const group = d.explain?.Groups?.find((x) => x.Name === g);
      return group ? funnel(group, s.Queued, blocked) : null;
    }), d.explain || !blocked ? null : failedPanel(blocked)),
    h('div', { class: 'one' }, dispatch(d, app)),
    h('div', { class: 'two' }, h('div', {}, panel('Groups', null, groups(d), scaling)), h('div', {}, panel('Deployment', current ? short(current.ID) : null, current ? deploymentRow(current, app, true) : h('p', { class: 'soft' }, 'None.')))),
    h('div', { class: 'one' }, allocations), h('div', { class: 'one' }, panel('Evaluations', link(`${jobPath(id, ns)}/evaluations`, 'all'), evalTable(d.evals.slice(0, 5))))];
}

const about = (e, at) => {
  const { id } = parts(at);
  return e.Topic !== 'Node' && (e.Key === id || (e.FilterKeys || []).includes(id));
};

export const job = { title: 'Job', nav: 'Jobs', name: (at) => parts(at).id, load, view, about };
