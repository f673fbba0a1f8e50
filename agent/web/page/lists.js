// SPDX-License-Identifier: Apache-2.0
// Lists: jobs by trouble first, nodes.
import { h, link, table } from './dom.js';
import { maybe } from './api.js';
import { num, ago, ms, jobPath, nodePath } from './words.js';

const ROWS = 500;

// A list with a filter and an order in its address.
function listPage({ title, nav, path, load, words, columns, key, sort, empty, about, more }) {
  const address = (at, change) => {
    const u = new URLSearchParams(at.query);
    for (const [k, v] of Object.entries(change)) v ? u.set(k, v) : u.delete(k);
    return `${path}${[...u].length ? `?${u}` : ''}`;
  };
  return {
    title, nav, load, about,
    view(rows, at, app) {
      const find = at.query.get('q') || '';
      const hit = find ? rows.filter((r) => words(r).toLowerCase().includes(find.toLowerCase())) : rows;
      const typed = (e) => {
        at.query.set('q', e.target.value);
        history.replaceState(null, '', address(at, { q: e.target.value }));
        app.render();
      };
      return [h('h1', {}, title), h('p', { class: 'sub' }, find ? `${num(hit.length)} of ${num(rows.length)}` : num(rows.length), hit.length > ROWS ? `, the first ${ROWS} are shown` : ''),
        h('div', { class: 'one' }, h('input', { type: 'search', placeholder: 'Filter', 'aria-label': `filter ${title}`, value: find, oninput: typed }), more ? [' ', more()] : null),
        h('section', { class: 'panel one' }, table(hit, columns, { key, sort: at.query.get('sort') || sort, address: (s) => address(at, { sort: s }), empty }))];
    },
  };
}


export function jobState(j) {
  const s = { Queued: 0, Running: 0, Starting: 0, Failed: 0, Lost: 0, Unknown: 0, Complete: 0 };
  for (const g of Object.values(j.JobSummary?.Summary || {})) for (const k of Object.keys(s)) s[k] += g[k] || 0;
  if (j.Stop) return { s, rank: 6, tone: 'soft', text: 'stopped' };
  if (s.Queued) return { s, rank: 0, tone: 'bad', text: `${num(s.Queued)} not placed` };
  if (s.Unknown) return { s, rank: 1, tone: 'waits', text: `${num(s.Unknown)} on nodes that are away` };
  if (j.Status === 'dead') return { s, rank: s.Failed || s.Lost ? 2 : 5, tone: s.Failed ? 'bad' : 'soft', text: s.Failed ? 'failed' : 'complete' };
  if (s.Starting) return { s, rank: 3, tone: 'waits', text: `${num(s.Starting)} starting` };
  return { s, rank: 4, tone: 'good', text: j.Periodic ? 'periodic' : j.ParameterizedJob ? 'dispatched' : j.Status };
}

const runLink = () => link('/ui/jobs/run', 'Run a job', { class: 'button main' });
export const jobs = listPage({
  title: 'Jobs', nav: 'Jobs', path: '/ui/jobs', sort: 'State', key: (j) => `${j.Namespace}/${j.ID}`, about: (e) => e.Topic === 'Job' || e.Topic === 'Allocation' || e.Topic === 'Evaluation',
  load: async () => (await maybe('/v1/jobs?namespace=*', [])).map((j) => ({ ...j, Namespace: j.Namespace || j.JobSummary?.Namespace || 'default', state: jobState(j) })),
  words: (j) => `${j.ID} ${j.Namespace} ${j.Type} ${j.state.text} ${j.NodePool}`,
  more: runLink,
  empty: 'No job yet: paddock job init -short; paddock job run example.nomad.hcl',
  columns: [
    { name: 'Job', sort: (j) => j.ID, cell: (j) => link(jobPath(j.ID, j.Namespace), j.ID) },
    { name: 'State', sort: (j) => `${j.state.rank}${j.ID}`, cell: (j) => h('span', { class: j.state.tone }, { bad: '✕ ', waits: '▲ ', good: '● ', soft: '○ ' }[j.state.tone], j.state.text) },
    { name: 'Running', n: true, sort: (j) => j.state.s.Running, cell: (j) => num(j.state.s.Running) },
    { name: 'Type', sort: (j) => j.Type, cell: (j) => j.Type },
    { name: 'Namespace', sort: (j) => j.Namespace, cell: (j) => j.Namespace },
    { name: 'Priority', n: true, sort: (j) => -j.Priority, cell: (j) => j.Priority },
    { name: 'Changed', n: true, sort: (j) => -j.SubmitTime, cell: (j) => ago(ms(j.SubmitTime)) },
  ],
});

const nodeRank = (n) => (n.Status !== 'ready' ? 0 : n.Drain ? 1 : n.SchedulingEligibility === 'ineligible' ? 2 : 3);
const nodeText = (n) => (n.Status !== 'ready' ? n.Status : n.Drain ? 'draining' : n.SchedulingEligibility === 'ineligible' ? 'not eligible' : 'ready');
export const nodes = listPage({
  title: 'Nodes', nav: 'Nodes', path: '/ui/clients', sort: 'State', key: (n) => n.ID, about: (e) => e.Topic === 'Node',
  load: () => maybe('/v1/nodes', []),
  words: (n) => `${n.Name} ${n.ID} ${n.Datacenter} ${n.NodePool} ${n.NodeClass} ${n.Address} ${nodeText(n)}`,
  empty: 'No node has joined yet: an agent with client { enabled = true } does.',
  columns: [
    { name: 'Node', sort: (n) => n.Name, cell: (n) => link(nodePath(n.ID), n.Name) },
    { name: 'State', sort: (n) => `${nodeRank(n)}${n.Name}`, cell: (n) => h('span', { class: ['bad', 'waits', 'waits', 'good'][nodeRank(n)] }, ['✕ ', '╱ ', '□ ', '● '][nodeRank(n)], nodeText(n)) },
    { name: 'Address', sort: (n) => n.Address, cell: (n) => n.Address },
    { name: 'Datacenter', sort: (n) => n.Datacenter, cell: (n) => n.Datacenter },
    { name: 'Pool', sort: (n) => n.NodePool, cell: (n) => n.NodePool },
    { name: 'Class', sort: (n) => n.NodeClass, cell: (n) => n.NodeClass || '-' },
    { name: 'Drivers', cell: (n) => Object.entries(n.Drivers || {}).filter(([, v]) => v.Healthy).map(([k]) => k).join(', ') || '-' },
    { name: 'Version', sort: (n) => n.Version, cell: (n) => n.Version },
  ],
});

export const services = listPage({
  title: 'Services', nav: 'Services', path: '/ui/services', sort: 'Service', key: (s) => s.key, about: (e) => e.Topic === 'Service' || e.Topic === 'Allocation',
  load: async () => (await maybe('/v1/services?namespace=*', [])).flatMap((n) => (n.Services || []).map((s) => ({ name: s.ServiceName, ns: n.Namespace, tags: s.Tags || [], key: `${n.Namespace}/${s.ServiceName}` }))),
  words: (s) => `${s.name} ${s.ns} ${s.tags.join(' ')}`,
  empty: 'No service is registered: a block service of a group or task does that.',
  columns: [{ name: 'Service', sort: (s) => s.name, cell: (s) => s.name }, { name: 'Namespace', sort: (s) => s.ns, cell: (s) => s.ns }, { name: 'Tags', cell: (s) => s.tags.join(', ') || '-' }],
});

export const variables = listPage({
  title: 'Variables', nav: 'Variables', path: '/ui/variables', sort: 'Path', key: (v) => `${v.Namespace}/${v.Path}`, about: () => false,
  load: () => maybe('/v1/vars?namespace=*', []),
  words: (v) => `${v.Path} ${v.Namespace}`,
  empty: 'No variable that this token may list: paddock var put PATH KEY=VALUE. What is in one is shown by paddock var get.',
  columns: [{ name: 'Path', sort: (v) => v.Path, cell: (v) => v.Path }, { name: 'Namespace', sort: (v) => v.Namespace, cell: (v) => v.Namespace }, { name: 'Changed', n: true, sort: (v) => -v.ModifyTime, cell: (v) => `${ago(ms(v.ModifyTime))} ago` }],
});

export const volumes = listPage({
  title: 'Volumes', nav: 'Volumes', path: '/ui/storage', sort: 'Volume', key: (v) => v.ID, about: () => false,
  load: () => maybe('/v1/volumes?type=host&namespace=*', []),
  words: (v) => `${v.Name} ${v.ID} ${v.Namespace} ${v.State}`,
  empty: 'No volume was made: paddock volume create.',
  columns: [{ name: 'Volume', sort: (v) => v.Name, cell: (v) => v.Name }, { name: 'State', sort: (v) => v.State, cell: (v) => v.State }, { name: 'Node', sort: (v) => v.NodeID, cell: (v) => link(nodePath(v.NodeID), (v.NodeID || '').slice(0, 8)) },
    { name: 'Namespace', sort: (v) => v.Namespace, cell: (v) => v.Namespace }, { name: 'Plugin', cell: (v) => v.PluginID || '-' }],
});
