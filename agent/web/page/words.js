// SPDX-License-Identifier: Apache-2.0
// Words and figures. What comes from jobs, nodes and logs is a stranger's text.

// Without control characters and those that turn the direction of writing, and not longer than anybody reads.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
export function clean(text, most = 2000) {
  const s = String(text);
  return (s.length > most ? `${s.slice(0, most)}… (${s.length} characters)` : s).replace(HIDDEN, '\ufffd');
}

export const num = (n) => Number(n || 0).toLocaleString('en');
export const plural = (n, one, many) => `${num(n)} ${n === 1 ? one : many || `${one}s`}`;
export const short = (id) => String(id || '').slice(0, 8);
export const ms = (ns) => Math.floor(Number(ns || 0) / 1e6);

export function span(t) {
  const s = Math.max(0, Math.round(t / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d`;
}
export const ago = (t) => (t ? span(Date.now() - t) : '-');

const two = (n) => String(n).padStart(2, '0');
export function clock(t) {
  const d = new Date(t);
  const hm = `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
  return Date.now() - t > 20 * 3600e3 ? `${d.getDate()} ${d.toLocaleString('en', { month: 'short' })}` : hm;
}
export const zoned = (t) => new Date(t).toString();

export function bytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  let v = Number(n || 0);
  for (; v >= 1024 && i < 4; i++) v /= 1024;
  return `${i && v < 100 ? v.toFixed(1) : Math.round(v)} ${units[i]}`;
}

// A part of an address; one that is no valid escape is taken as it stands.
export function unescaped(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// A job's address and back: "ID@namespace", as Nomad writes it. Ids may hold slashes.
export const jobPath = (id, ns) => `/ui/jobs/${encodeURIComponent(id)}@${encodeURIComponent(ns || 'default')}`;
export const nodePath = (id) => `/ui/clients/${encodeURIComponent(id)}`;
export const allocPath = (id) => `/ui/allocations/${encodeURIComponent(id)}`;
