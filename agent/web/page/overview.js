// SPDX-License-Identifier: Apache-2.0
// The fleet at a glance: a verdict in words, what needs somebody, what changes, nodes, what happened lately.
import { h, link } from './dom.js';
import { get, send, maybe } from './api.js';
import { num, plural, span, ago, clock, zoned, ms, jobPath, nodePath, allocPath, short, clean } from './words.js';
import { heat } from './heat.js';

const RECENT = 10 * 60e3;
const TROUBLES = 10;
const CHANGES = 8;
const MANY = 20000; // allocations that are counted, not read
const lately = []; // {index, at, tone, what}
const explained = new Map(); // a job's key to {at, index, groups}

const q = encodeURIComponent;

async function load(at, signal) {
  const first = maybe('/v1/jobs?namespace=*', []);
  const counted = (list) => list.reduce((n, j) => n + Object.values(j.JobSummary?.Summary || {}).reduce((s, g) => s + g.Running, 0), 0);
  const [jobs, nodes, deployments, blocked, allocs, ended, members, leader] = await Promise.all([
    first, maybe('/v1/nodes?resources=true', []),
    maybe(`/v1/deployments?namespace=*&filter=${q('Status != "successful" and Status != "failed" and Status != "cancelled"')}`, []),
    maybe('/v1/evaluations?namespace=*&status=blocked&per_page=1000', []),
    first.then((list) => (counted(list) > MANY ? [] : maybe(`/v1/allocations?namespace=*&resources=true&task_states=false&filter=${q('ClientStatus == "running" or ClientStatus == "pending"')}`, []))),
    maybe(`/v1/allocations?namespace=*&reverse=true&per_page=200&filter=${q('ClientStatus == "failed" or ClientStatus == "lost" or ClientStatus == "unknown"')}`, []),
    maybe('/v1/agent/members', { Members: [] }),
    maybe('/v1/status/leader', ''),
  ]);
  const d = { jobs, nodes, deployments, blocked, allocs, ended, members: members.Members || [], leader, index: Math.max(jobs.index || 0, allocs.index || 0) };
  d.running = counted(jobs);
  d.many = d.running > MANY;
  d.some = jobs.refused || nodes.refused;
  d.down = nodes.filter((n) => n.Status === 'down' || n.Status === 'disconnected');
  const full = await Promise.all(d.down.slice(0, 5).map((n) => maybe(`/v1/node/${n.ID}`, null)));
  d.downSince = new Map(full.filter(Boolean).map((n) => [n.ID, n.StatusUpdatedAt * 1000]));
  judge(d);
  for (const t of d.troubles.slice(0, 5)) if (t.job) await explain(t, signal);
  return d;
}

// Asks once for each state of the job, and at most every half minute, why it is not placed.
async function explain(t, signal) {
  const key = `${t.job.Namespace}/${t.job.ID}`;
  const old = explained.get(key);
  if (!old || Date.now() - old.at > 30e3 || old.index !== t.job.ModifyIndex) {
    const r = await get(`/v1/job/${q(t.job.ID)}/explain?namespace=${q(t.job.Namespace)}`, signal).catch(() => null);
    explained.set(key, { at: Date.now(), index: t.job.ModifyIndex, groups: r?.Groups || [] });
    if (explained.size > 100) explained.delete(explained.keys().next().value);
  }
  const g = explained.get(key).groups.find((x) => x.Name === t.group);
  if (g) t.why = whyText(g);
}

export function whyText(g) {
  const fits = g.Reasons?.filter((r) => r.Fits).reduce((n, r) => n + r.Count, 0) || 0;
  const not = (g.Reasons || []).filter((r) => !r.Fits).slice(0, 3).map((r) => `${r.Reason}: ${plural(r.Count, 'node')}`);
  const near = (g.Reasons || []).filter((r) => !r.Fits).flatMap((r) => r.Nodes || []).find((n) => n.Detail);
  if (near) not.push(`nearest is ${near.Name}, a task ${near.Detail}`);
  if (!g.Nodes) return 'no node is in its datacenters and pool';
  return (fits ? `${plural(fits, 'node')} would take one now; ` : '') + (not.join('; ') || 'nothing speaks against it');
}

export function evalCause(e, group) {
  const m = e?.FailedTGAllocs?.[group];
  if (!m) return e?.StatusDescription || '';
  const parts = [];
  for (const [why, n] of Object.entries(m.DimensionExhausted || {})) parts.push(`${why}: ${plural(n, 'node')}`);
  for (const [why, n] of Object.entries(m.ConstraintFiltered || {})) parts.push(`${why}: ${plural(n, 'node')}`);
  if (m.QuotaExhausted?.length) parts.push(`quota: ${m.QuotaExhausted.join(', ')}`);
  if (!m.NodesEvaluated) parts.push('no node could be looked at: none is ready in its datacenters and pool');
  return parts.join('; ') || `${plural(m.NodesEvaluated, 'node')} looked at, none fits`;
}

// Makes the rows of trouble, worst first; `score` orders them.
export function judge(d) {
  const t = [];
  const blocked = new Map(d.blocked.map((e) => [`${e.Namespace}/${e.JobID}`, e]));
  d.missing = 0;
  d.short = new Set();
  for (const j of d.jobs) {
    if (j.Stop || j.Periodic || (j.ParameterizedJob && !j.ParentID)) continue;
    for (const [group, s] of Object.entries(j.JobSummary?.Summary || {})) {
      if (!s.Queued) continue;
      const key = `${j.JobSummary.Namespace || j.Namespace}/${j.ID}`;
      j.Namespace = j.Namespace || j.JobSummary.Namespace;
      d.missing += s.Queued;
      d.short.add(key);
      t.push({ score: 900 - t.length / 1e4, tone: 'bad', job: j, group, what: [link(jobPath(j.ID, j.Namespace), j.ID), ` / ${group}: ${plural(s.Queued, 'allocation')} not placed`],
        why: evalCause(blocked.get(key), group), go: [jobPath(j.ID, j.Namespace), 'Why?'], key: `s${key}/${group}` });
    }
  }
  const failures = new Map();
  for (const a of d.ended) {
    if (a.ClientStatus !== 'failed' || Date.now() - ms(a.ModifyTime) > RECENT) continue;
    const key = `${a.Namespace}/${a.JobID}/${a.TaskGroup}`;
    const f = failures.get(key) || { n: 0, a };
    f.n += 1;
    if (a.ModifyIndex > f.a.ModifyIndex) f.a = a;
    failures.set(key, f);
  }
  d.failing = new Set();
  for (const [key, { n, a }] of failures) {
    d.failing.add(`${a.Namespace}/${a.JobID}`);
    t.push({ score: 800, tone: 'bad', what: [link(jobPath(a.JobID, a.Namespace), a.JobID), ` / ${a.TaskGroup}: failed ${n === 1 ? 'once' : `${n} times`} in 10 min`],
      why: lastWords(a), go: [`${allocPath(a.ID)}`, 'Logs'], key: `f${key}` });
  }
  for (const n of d.down) {
    const lost = d.ended.filter((a) => a.NodeID === n.ID && a.ClientStatus !== 'failed');
    const since = d.downSince?.get(n.ID);
    t.push({ score: 950, tone: 'waits', what: ['node ', link(nodePath(n.ID), n.Name), ` is ${n.Status}${since ? ` since ${clock(since)}` : ''}`],
      why: [n.StatusDescription, lost.length ? `${plural(lost.length, 'allocation')} of it were lost or wait for it` : 'no allocation was on it'].filter(Boolean).join('; '), go: [nodePath(n.ID), 'Node'], key: `n${n.ID}` });
  }
  for (const m of d.members) {
    if (m.Status === 'alive' || m.Status === 'left') continue;
    t.push({ score: 1000, tone: 'bad', what: [`server ${m.Name} is ${m.Status}`], why: `${m.Addr}:${m.Port} does not answer the other servers`, go: ['/ui/', ''], key: `m${m.Name}` });
  }
  if (!d.leader && d.leader?.refused === undefined && d.members.length)
    t.push({ score: 1100, tone: 'bad', what: ['the servers have no leader'], why: 'nothing is placed and nothing can be changed until a majority of them speak to each other', go: ['/ui/', ''], key: 'leader' });
  d.waiting = d.deployments.filter((x) => Object.values(x.TaskGroups || {}).some((g) => g.DesiredCanaries > 0 && !g.Promoted));
  for (const n of d.nodes) {
    const end = n.Drain && n.DrainStrategy?.ForceDeadline ? Date.parse(n.DrainStrategy.ForceDeadline) : 0;
    if (end > 0 && end < Date.now())
      t.push({ score: 500, tone: 'waits', what: ['the drain of ', link(nodePath(n.ID), n.Name), ' is past its deadline'], why: `it was to end at ${clock(end)}`, go: [nodePath(n.ID), 'Node'], key: `d${n.ID}` });
  }
  d.troubles = t.sort((a, b) => b.score - a.score);
}

// The last words of an allocation: the newest event of the task that failed.
const TELLING = ['Terminated', 'Driver Failure', 'Setup Failure', 'Failed Validation', 'Failed Artifact Download', 'Template'];
function lastWords(a) {
  let best = null;
  for (const [task, s] of Object.entries(a.TaskStates || {}))
    for (const e of s.Events || [])
      if (TELLING.includes(e.Type) && (!best || e.Time >= best.Time)) best = { ...e, task };
  return best ? `${best.task}: ${best.DisplayMessage || best.Type}` : a.ClientDescription || 'its tasks failed';
}

function verdict(d) {
  const parts = [];
  const say = (tone, text, href) => parts.push(h('a', { class: tone, href }, text));
  const dead = d.members.filter((m) => m.Status !== 'alive' && m.Status !== 'left').length;
  if (!d.leader && !d.leader?.refused && d.members.length) say('bad', 'The servers have no leader', '/ui/');
  if (dead) say('bad', `${plural(dead, 'server')} ${dead === 1 ? 'is' : 'are'} away`, '/ui/');
  if (d.short.size) say('bad', `${plural(d.short.size, 'job')} ${d.short.size === 1 ? 'is' : 'are'} short of ${plural(d.missing, 'allocation')}`, '/ui/jobs?sort=State');
  if (d.down.length) say('waits', `${plural(d.down.length, 'node')} ${d.down.length === 1 ? 'is' : 'are'} down`, '/ui/clients?sort=State');
  const failing = [...d.failing].filter((k) => !d.short.has(k)).length;
  if (failing) say('bad', `${plural(failing, 'job')} failed lately`, '/ui/jobs?sort=State');
  if (d.waiting.length) say('waits', `${plural(d.waiting.length, 'canary waits', 'canaries wait')} for somebody`, '/ui/');
  const troubled = new Set([...d.short, ...d.failing]).size;
  const rest = d.jobs.length - troubled;
  const out = parts.flatMap((p, i) => (i ? [', ', p] : [p]));
  if (!parts.length) return h('h1', { class: 'verdict' }, d.jobs.length ? `All ${plural(d.jobs.length, 'job')} run as asked.` : 'No job runs here yet.');
  return h('h1', { class: 'verdict' }, out, '. ', troubled ? (rest ? `${num(rest)} ${rest === 1 ? 'other runs' : 'others run'} as asked.` : '') : `All ${plural(d.jobs.length, 'job')} run as asked.`);
}

function subline(d) {
  const ready = d.nodes.filter((n) => n.Status === 'ready').length;
  const servers = d.members.filter((m) => m.Status === 'alive').map((m) => `${m.Name.replace(/\.[^.]*$/, '')}${d.leader === `${m.Addr}:${m.Tags?.port || 4647}` ? ' (leader)' : ''}`);
  return [`${num(ready)} of ${plural(d.nodes.length, 'node')} ready`, `${plural(d.running, 'allocation')} running`,
    servers.length ? `servers ${servers.join(', ')}` : null, `index ${num(d.index)}`, d.some ? 'counted is what you may see' : null].filter(Boolean).join(' · ');
}

function needs(d) {
  const rows = d.troubles.slice(0, TROUBLES).map((t) => h('div', { class: 'row', key: t.key },
    h('span', { class: t.tone, 'aria-hidden': true }, t.tone === 'bad' ? '✕' : '▲'), h('div', {}, t.what), t.go[1] ? link(t.go[0], t.go[1]) : h('span'), h('p', {}, t.why || 'the servers have not said why yet')));
  const more = d.troubles.length - rows.length;
  return h('section', { class: 'panel tall', 'aria-label': 'Needs somebody' }, h('div', { class: 'head' }, h('h2', {}, 'Needs somebody'), h('span', {}, String(d.troubles.length))),
    rows.length ? rows : d.jobs.length ? h('p', { class: 'soft' }, 'Nothing.') : h('div', { class: 'soft' }, h('p', {}, 'A first job:'), h('pre', { class: 'box' }, 'paddock job init -short\npaddock job run example.nomad.hcl\npaddock job status example')),
    more > 0 ? h('p', { class: 'soft' }, `and ${num(more)} more`) : null);
}

export function deploymentRow(x, app, own) {
  const groups = Object.entries(x.TaskGroups || {});
  let total = 0;
  let healthy = 0;
  let placed = 0;
  let unhealthy = 0;
  for (const [, g] of groups) {
    const unpromoted = g.DesiredCanaries > 0 && !g.Promoted;
    total += unpromoted ? g.DesiredCanaries : g.DesiredTotal;
    healthy += g.HealthyAllocs;
    placed += g.PlacedAllocs;
    unhealthy += g.UnhealthyAllocs;
  }
  const waits = groups.some(([, g]) => g.DesiredCanaries > 0 && !g.Promoted);
  const ready = waits && groups.every(([, g]) => !g.DesiredCanaries || g.Promoted || g.HealthyAllocs >= g.DesiredCanaries);
  const since = Date.now() - ms(x.CreateTime);
  const left = healthy > 0 && healthy < total ? `, about ${span((since / healthy) * (total - healthy))} left` : '';
  const pct = (n) => `${total ? Math.min(100, (100 * n) / total) : 0}%`;
  const act = (verb, body) => () => app.act(() => send('PUT', `/v1/deployment/${verb}/${x.ID}`, { DeploymentID: x.ID, ...body }));
  const going = !['successful', 'failed', 'cancelled'].includes(x.Status);
  const paused = x.Status === 'paused';
  return h('div', { class: 'change', key: `d${x.ID}` },
    h('div', { class: 'line' }, h('span', {}, own ? '' : link(jobPath(x.JobID, x.Namespace), x.JobID), ` ${groups.map(([g]) => g).join(', ')} v${x.JobVersion}`),
      h('span', { class: `chip ${x.Status === 'failed' ? 'bad' : waits && going ? 'waits' : 'good' }` }, !going ? x.Status : ready ? 'canary waits for you' : waits ? 'canary starts' : paused ? 'paused' : `${num(healthy)} of ${num(total)}`)),
    h('div', { class: 'bar', role: 'img', 'aria-label': `${healthy} of ${total} healthy, ${unhealthy} unhealthy` }, h('i', { class: 'good', style: { width: pct(healthy) } }), h('i', { class: 'bad', style: { width: pct(unhealthy) } }), h('i', { class: 'starts', style: { width: pct(Math.max(0, placed - healthy - unhealthy)) } })),
    h('div', { class: 'line' }, h('span', { class: 'soft' }, !going ? x.StatusDescription : ready ? `${plural(healthy, 'canary', 'canaries')} healthy` : `${plural(Math.max(0, placed - healthy - unhealthy), 'allocation')} starting${left}`),
      going && app ? h('span', { class: 'acts' },
        h('button', { onclick: () => app.sure(`Fail the deployment of ${x.JobID}?`, 'It ends; where the job says auto_revert, the last stable version is run again.', 'Fail it', () => send('PUT', `/v1/deployment/fail/${x.ID}`, { DeploymentID: x.ID })) }, 'Fail'),
        own ? h('button', { onclick: act('pause', { Pause: !paused }) }, paused ? 'Go on' : 'Pause') : null,
        waits ? h('button', { class: 'main', disabled: !ready, onclick: act('promote', { All: true }) }, 'Promote') : null) : null));
}

function changing(d, app) {
  const drains = d.nodes.filter((n) => n.Drain);
  const rank = (x) => (d.waiting.includes(x) ? 1e15 : 0) + x.CreateIndex;
  const rows = [...d.deployments].sort((a, b) => rank(b) - rank(a)).slice(0, CHANGES).map((x) => deploymentRow(x, app));
  if (d.deployments.length > CHANGES) rows.push(h('p', { class: 'soft' }, `and ${plural(d.deployments.length - CHANGES, 'more deployment')}`));
  for (const n of drains.slice(0, 10)) {
    const left = d.allocs.filter((a) => a.NodeID === n.ID).length;
    rows.push(h('div', { class: 'change', key: `n${n.ID}` }, h('div', { class: 'line' }, h('span', {}, 'drain of ', link(nodePath(n.ID), n.Name)), h('span', { class: 'chip' }, d.many ? 'drains' : `${plural(left, 'allocation')} left`)),
      h('p', { class: 'soft' }, n.LastDrain?.StartedAt ? `for ${ago(Date.parse(n.LastDrain.StartedAt))}` : '')));
  }
  const side = [d.deployments.length ? plural(d.deployments.length, 'deployment') : '', drains.length ? plural(drains.length, 'drain') : ''].filter(Boolean).join(', ');
  return h('section', { class: 'panel tall', 'aria-label': 'Changing now' }, h('div', { class: 'head' }, h('h2', {}, 'Changing now'), h('span', {}, side)), rows.length ? rows : h('p', { class: 'soft' }, 'Nothing.'));
}

const seen = new Map();
function sentence(e) {
  const p = e.Payload || {};
  if (e.Topic === 'Job') {
    const j = p.Job || {};
    const a = link(jobPath(e.Key, e.Namespace), e.Key);
    if (p.Deleted) return ['soft', [e.Key, ' was removed']];
    if (e.Type === 'JobDeregistered' || j.Stop) return ['soft', [a, ' was stopped']];
    return e.Type === 'JobRegistered' ? ['soft', [a, ` registered, version ${j.Version ?? '?'}`]] : null;
  }
  if (e.Topic === 'Deployment') {
    const x = p.Deployment || {};
    return ['successful', 'failed', 'cancelled'].includes(x.Status) ? [x.Status === 'failed' ? 'bad' : 'good', [link(jobPath(x.JobID, e.Namespace), x.JobID), ` version ${x.JobVersion}: deployment ${x.Status}`]] : null;
  }
  if (e.Topic === 'Node') {
    const n = p.Node || {};
    const how = p.Deleted ? 'was removed' : n.Status === 'down' ? 'missed its heartbeat, down' : n.DrainStrategy || n.Drain ? 'drains' : n.SchedulingEligibility === 'ineligible' ? 'is not eligible' : `is ${n.Status}`;
    return [n.Status === 'down' ? 'bad' : how === 'is ready' ? 'good' : 'waits', [link(nodePath(e.Key), n.Name || short(e.Key)), ` ${how}`]];
  }
  if (e.Topic === 'Allocation' && p.Allocation) {
    const a = p.Allocation;
    if (!['running', 'failed', 'complete', 'lost', 'unknown'].includes(a.ClientStatus)) return null;
    const words = a.ClientStatus === 'failed' ? lastWords(a) : a.ClientStatus === 'running' ? `running on ${a.NodeName}` : a.ClientStatus;
    return [a.ClientStatus === 'running' ? 'good' : a.ClientStatus === 'complete' ? 'soft' : 'bad', [link(allocPath(a.ID), a.Name), `: ${words}`]];
  }
  return null;
}
const textOf = (parts) => parts.map((p) => (typeof p === 'string' ? p : p.textContent)).join('');
function eventTime(e) {
  const p = Object.values(e.Payload || {}).find((v) => v && typeof v === 'object') || {};
  if (e.Topic === 'Job') return ms(p.SubmitTime);
  if (e.Topic === 'Node') return (p.StatusUpdatedAt || 0) * 1000;
  return ms(p.ModifyTime);
}
function event(e) {
  const s = sentence(e);
  if (!s) return;
  const text = textOf(s[1]);
  if (seen.get(e.Topic + e.Key) === text) return;
  seen.set(e.Topic + e.Key, text);
  if (seen.size > 5000) seen.clear();
  lately.unshift({ key: `${e.Index}/${e.Topic}/${e.Key}`, at: eventTime(e) || Date.now(), tone: s[0], what: s[1] });
  lately.length = Math.min(lately.length, 12);
}

const latelyPanel = () => h('section', { class: 'panel tall', 'aria-label': 'Lately' }, h('div', { class: 'head' }, h('h2', {}, 'Lately')),
  lately.length ? h('ul', { class: 'times' }, lately.map((l) => h('li', { key: l.key }, h('span', { class: l.tone, 'aria-hidden': true }, '○'), h('time', { title: zoned(l.at) }, clock(l.at)), h('span', {}, l.what.map((w) => (typeof w === 'string' ? clean(w, 300) : w.cloneNode(true))))))) : h('p', { class: 'soft' }, 'Nothing since this page was opened.'));

function view(d, at, app) {
  if (!d) return [h('h1', { class: 'verdict' }), h('p', { class: 'sub' })];
  return [verdict(d), h('p', { class: 'sub' }, subline(d)),
    h('div', { class: 'two' }, h('div', {}, needs(d), heat(d, at, app)), h('div', {}, changing(d, app), latelyPanel()))];
}

export const overview = { title: 'Overview', nav: 'Overview', shell: true, load, view, event };
