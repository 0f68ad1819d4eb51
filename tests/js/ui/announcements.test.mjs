import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Announcements } from '../../../static/voiceapp/ui/announcements.js';

const TURN = ['connecting', 'listening', 'thinking', 'speaking', 'listening', 'thinking', 'speaking', 'listening'];
const said = (states, announce) => {
  const made = new Announcements();
  return states.filter((state) => made.ofState(state, announce));
};

test('of the usual course the first listening is said', () => {
  assert.deepEqual(said(TURN, 'changes'), ['listening']);
  assert.deepEqual(said([...TURN, 'muted', 'listening', 'reconnecting', 'listening', 'ended'], 'changes'),
    ['listening', 'muted', 'listening', 'reconnecting', 'listening', 'ended']);
  assert.deepEqual(said([...TURN, 'ended', ...TURN], 'changes'), ['listening', 'ended', 'listening']);
});

test('all or nothing is said where that is chosen', () => {
  assert.deepEqual(said(TURN, 'all'), TURN);
  assert.deepEqual(said([...TURN, 'ended', 'failed'], 'nothing'), []);
});

test('an answer in writing is said, and what one heard or said is not', () => {
  const made = new Announcements();
  const of = (role, spoken, announce) => made.ofCaption({ role, spoken }, announce);
  assert.deepEqual([of('assistant', false, 'changes'), of('user', true, 'changes'), of('tool', false, 'changes')], [true, false, false]);
  assert.deepEqual([of('user', true, 'all'), of('assistant', false, 'nothing')], [true, false]);
});
