// SPDX-License-Identifier: Apache-2.0
// A job from the editor: parsed and planned by the servers first, then run as it was planned.
import { h, panel } from './dom.js';
import { send } from './api.js';
import { plural, jobPath } from './words.js';
import { diffLines } from './job.js';
import { evalCause } from './overview.js';

const q = encodeURIComponent;
export const draft = { key: '', text: '', typed: false, planned: null, error: '', busy: false };
const FIRST = 'job "hello" {\n  group "hello" {\n    task "hello" {\n      driver = "exec"\n      config {\n        command = "/bin/sleep"\n        args    = ["infinity"]\n      }\n    }\n  }\n}\n';

export function edit(key, text) {
  if (draft.key !== key || !(draft.typed || draft.planned)) Object.assign(draft, { key, text, typed: false, planned: null, error: '', busy: false });
}

async function plan(app) {
  Object.assign(draft, { busy: true, error: '', planned: null });
  app.render();
  try {
    const text = draft.text;
    const job = text.trimStart().startsWith('{') ? (JSON.parse(text).Job || JSON.parse(text)) : await send('POST', '/v1/jobs/parse', { JobHCL: text, Canonicalize: true });
    const ns = job.Namespace || 'default';
    const r = await send('POST', `/v1/job/${q(job.ID)}/plan?namespace=${q(ns)}`, { Job: job, Diff: true });
    draft.planned = { job, ns, r, text };
  } catch (e) {
    draft.error = e.message;
  }
  draft.busy = false;
  app.render();
}

async function run(app) {
  const { job, ns, r, text } = draft.planned;
  await send('POST', `/v1/jobs?namespace=${q(ns)}`, { Job: job, EnforceIndex: true, JobModifyIndex: r.JobModifyIndex, Submission: { Source: text, Format: text.trimStart().startsWith('{') ? 'json' : 'hcl2', VariableFlags: {}, Variables: '' } });
  Object.assign(draft, { key: '', typed: false, planned: null });
  app.go(jobPath(job.ID, ns));
}

function changes(p) {
  const groups = Object.entries(p.r.Annotations?.DesiredTGUpdates || {}).map(([g, u]) => `${g}: ${Object.entries(u).filter(([, n]) => n).map(([k, n]) => `${n} ${k.replace(/[A-Z]/g, (c) => ` ${c.toLowerCase()}`).trim()}`).join(', ') || 'nothing'}`);
  const failed = Object.entries(p.r.FailedTGAllocs || {}).map(([g, m]) => `${g}: ${plural(m.CoalescedFailures + 1, 'allocation')} would not be placed; ${evalCause(p.r, g)}`);
  return [h('pre', { class: 'box diff' }, p.r.Diff?.Type === 'None' ? 'Nothing changes.' : [h('div', {}, `job ${p.job.ID}: ${p.r.Diff?.Type || ''}`), diffLines(p.r.Diff || {}, 1)]),
    groups.length ? h('p', { class: 'soft' }, groups.join(' · ')) : null, failed.map((t) => h('p', { class: 'error' }, t)), p.r.Warnings ? h('p', { class: 'note' }, p.r.Warnings) : null];
}

export function editor(app) {
  const p = draft.planned && draft.planned.text === draft.text ? draft.planned : null;
  return [panel('Job file', 'HCL or JSON', h('textarea', { spellcheck: 'false', 'aria-label': 'job file', value: draft.text, 'data-keys': true, oninput: (e) => { draft.text = e.target.value; draft.typed = true; if (draft.planned) app.render(); } }),
    h('div', { class: 'acts' }, h('button', { class: p ? null : 'main', disabled: draft.busy, onclick: () => plan(app) }, 'Plan'), p ? h('button', { class: 'main', onclick: () => app.act(() => run(app)) }, p.r.JobModifyIndex ? 'Run the changes' : 'Run') : null)),
  draft.error ? h('p', { class: 'error', role: 'alert' }, draft.error) : null, p ? h('div', { class: 'one' }, panel('What would change', null, changes(p))) : null];
}

export const runJob = { title: 'Run a job', nav: 'Jobs', load: async () => ({}), shell: true,
  arrive: () => edit('new', FIRST),
  view: (d, at, app) => [h('h1', {}, 'Run a job'), h('p', { class: 'sub' }, 'The servers are asked first what it would do.'), h('div', { class: 'one' }, editor(app))] };
