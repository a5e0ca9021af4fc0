import { expect, it } from 'vitest'
import { Hub } from '../../src/edge/hub.ts'
import { Listener } from '../../src/edge/listener.ts'
import { View } from '../../src/edge/view.ts'
import { welcome } from '../../src/edge/welcome.ts'
import { defaultOptions } from '../../src/protocol/selection.ts'
import { openSqliteTape } from '../../src/tape/sqlite.ts'

const now = () => Date.now()
function house(bound = 1000000) {
  const tape = openSqliteTape({ dir: ':memory:', retentionMs: 1e9, bound, now, dice: Math.random })
  const view = new View(tape)
  const hub = new Hub({ tape, view, now, dice: Math.random, backlogBoundBytes: 262144, clientsBound: 10, selectionsBound: 10, shownOut() {} })
  const h = { hub, view, tape, now, chainId: () => 1, server: 's', demo: false, heartbeatMs: 15000, staleMs: 1e9, limits: { selections: 1, replay: 100000, backlog: 1, retentionMs: 1 } }
  return h
}
const status = (n: number) => ({ type: 'hole', symbol: '*', address: null, time: new Date().toISOString(), blocks: { from: n, to: n }, reason: 'x' }) as const
const transfer = (n: number) => ({ type: 'seal', symbol: 'A', address: '0x' + '1'.repeat(40), time: new Date().toISOString(), block: { number: n, hash: null, timestamp: null }, keys: [], types: [], late: [], count: 0, digest: '0'.repeat(32) }) as const

it('race', async () => {
  const lost: number[] = []
  for (let k = 0; k < 30; k++) {
    const h = house()
    const said: any[] = []
    const outlet = { write: (b: Buffer) => { for (const l of b.toString().trim().split('\n')) said.push(JSON.parse(l)) }, backlog: 0, drained: async () => {}, ping: () => false, end() {} }
    const l = new Listener({ id: 'x', carrier: 'ndjson', outlet, heartbeatMs: null, options: defaultOptions, now: now() })
    l.tokens = null
    h.hub.enter(l)
    const done = welcome(h as never, l, { since: { from: 'now' }, snapshot: false, rejected: [] })
    for (let i = 0; i < k; i++) await null
    h.tape.append([status(k)] as never)
    await done
    if (!said.some((m) => m.type === 'hole')) {
      const hello = said.find((m) => m.type === 'hello'); const live = said.find(m => m.type === 'live')
      if (hello.id !== live.id) lost.push(k)
      else lost.push(-k) // after hello? hello.id covers
    }
  }
  console.log('lost at microtask', lost)
})

it('overtaken', async () => {
  const h = house(1000)
  for (let i = 0; i < 1000; i++) await h.tape.append([transfer(i)] as never)
  const said: any[] = []
  let hold: (() => void) | null = null
  const outlet = { write: (b: Buffer) => { for (const l of b.toString().trim().split('\n')) said.push(JSON.parse(l)) }, backlog: 0, drained: async () => {}, ping: () => false, end() {} }
  const l = new Listener({ id: 'x', carrier: 'ndjson', outlet, heartbeatMs: null, options: defaultOptions, now: now() })
  l.tokens = null
  h.hub.enter(l)
  const done = welcome(h as never, l, { since: { from: 'start' }, snapshot: false, rejected: [] })
  while (!said.some((m) => m.type === 'seal')) await null
  for (let i = 1000; i < 1500; i++) h.tape.append([transfer(i)] as never)
  await done
  let last = 0
  for (const m of said) {
    const seq = m.id ? Number(m.id.split('.')[1]) : null
    if (m.type === 'gap') { console.log('gap', m.from, m.to, 'next', said[said.indexOf(m) + 1].id) ; last = seq! }
    else if (m.type === 'seal') { if (seq! !== last + 1) console.log('jump', last, seq); last = seq! }
  }
  console.log(said.at(-1))
})
