import { describe, expect, it } from 'vitest'
import type { Gap, StreamItem } from '../../src/sdk/client/stream-types.ts'
import type { Fault } from './fault-table.ts'
import { differences } from './laws/client-streams.ts'
import { plantedBugs } from './planted-bugs.ts'
import { runSimulation } from './simulation-run.ts'
import { type ClientSettings, settingsOf } from './simulation-settings.ts'

const item = (seq: number, type: 'nav' | 'seal' = 'nav') => ({ type, id: `a.${seq}` }) as StreamItem
const gap = (after: number, through: number, reason: Gap['reason'] = 'expired') =>
  ({ type: 'gap', id: `a.${through}`, reason, after: `a.${after}`, through: `a.${through}` }) as Gap
const sent = (seqs: readonly number[]) => seqs.map((seq) => [`a.${seq}`, JSON.stringify(item(seq))] as const)
const proven = 'a.4'
type Case = Partial<Parameters<typeof differences>[2]> & { readonly reference?: readonly number[] }

describe('the law about the SDK', () => {
  it.each<[string, readonly StreamItem[], Case, readonly string[]]>([
    ['everything', [item(1), item(2), item(3), item(4), item(5)], {}, []],
    ['a late start', [item(3), item(4)], {}, []],
    ['what nothing has proven', [item(1), item(2), item(3), item(4)], {}, []],
    ['a message less', [item(1), item(2), item(4)], {}, ['a.3 is missing']],
    ['a gap over it', [item(1), gap(1, 3), item(4)], {}, []],
    ['a gap that ends at it', [item(1), item(2), gap(2, 3), item(4)], {}, []],
    ['a gap beside it', [item(1), gap(2, 3), item(4)], {}, ['a.2 is missing']],
    ['a gap over numbers that went back', [item(1), gap(9, 3, 'ahead'), item(4)], {}, []],
    ['a gap beside numbers that went back', [item(1), gap(9, 2, 'ahead'), item(4)], {}, ['a.3 is missing']],
    ['a tape that lost its end', [item(1), item(4)], { lost: new Set(['a.2', 'a.3']) }, []],
    ['a gap over what the tape lost', [item(1), item(2), gap(1, 3), item(4)], { knownLost: new Set(['a.2']) }, []],
    [
      'a gap back to before what the tape lost',
      [item(1), item(2), item(3), gap(3, 1), item(4)],
      { knownLost: new Set(['a.2', 'a.3']) },
      [],
    ],
    [
      'a gap that came before what the tape lost',
      [gap(1, 2), item(2), item(3), item(4)],
      { knownLost: new Set(['a.2']) },
      ['a.2 is lost, and no gap says so'],
    ],
    ['another order', [item(2), item(1), item(3), item(4)], {}, ['a.1 comes after a.2']],
    ['a repetition', [item(1), item(2), item(3), item(3), item(4)], {}, ['a.3 comes twice']],
    ['a repetition by a program that restarts', [item(1), item(2), item(3), item(3), item(4)], { restartEveryMs: 1 }, []],
    ['another content', [item(1), item(2), item(3, 'seal'), item(4)], {}, ['a.3 is not what was sent']],
    ['an invention', [item(1), item(2), item(3), item(4), item(9)], {}, ['a.9 is not what was sent']],
    ['the end of an evicted fact', [item(1), item(2), item(3), item(4), item(9, 'seal')], { evicts: true }, []],
    ['such an end that comes late', [item(2), item(3), item(1, 'seal'), item(4)], { evicts: true, reference: [2, 3, 4] }, []],
    [
      'a part of what the other client lacks',
      [item(2), item(3), item(4)],
      { evicts: true, reference: [2, 4], skipped: [gap(2, 3)] },
      [],
    ],
    [
      'a message beside what the other client lacks',
      [item(2), item(3), item(4)],
      { evicts: true, reference: [2, 4], skipped: [gap(3, 4)] },
      ['a.3 is not what was sent'],
    ],
    [
      'a false alarm',
      [item(1), item(2), gap(2, 2, 'missed'), item(3), item(4)],
      {},
      [`claims a loss: ${JSON.stringify(gap(2, 2, 'missed'))}`],
    ],
    ['an alarm where messages get lost', [item(1), gap(1, 3, 'missed'), item(4)], { losesMessages: true }, []],
  ])('judges %s', (_, items, { reference = [1, 2, 3, 4, 5], ...conditions }, found) => {
    const defaults = {
      losesMessages: false,
      restartEveryMs: null,
      lost: new Set<string>(),
      knownLost: new Set<string>(),
      evicts: false,
      skipped: [],
      proven,
    }
    expect(differences(sent(reference), items, { ...defaults, ...conditions })).toEqual(found)
  })
})

describe('the SDK in a world that loses one message in a hundred while heartbeats go on', () => {
  const lossy: ClientSettings = {
    selection: {},
    cutEveryMs: null,
    restartEveryMs: null,
    lossPercent: 1,
    queueBound: 10_000,
    fill: false,
  }
  const busy = { ...settingsOf(1), mode: 'flash', activity: 200, spanMs: 20_000, hasLink: true, liveness: true } as const

  it.each<[string, Partial<ClientSettings>, 'some' | 'no']>([
    ['all types', { selection: { types: '*' } }, 'some'],
    ['some types', { selection: { types: ['transfer', 'nav'] } }, 'some'],
    ['a value filter', { selection: { minValue: '1' } }, 'some'],
    ['the sealed view', { selection: { stage: 'sealed' } }, 'some'],
    ['broken connections', { selection: { minValue: '1' }, cutEveryMs: 3_000 }, 'some'],
    ['gaps that are filled', { selection: { types: '*' }, fill: true }, 'no'],
    ['gaps of a value filter that are filled', { selection: { minValue: '1' }, fill: true }, 'no'],
  ])('notices every loss, with %s', async (_, settings, gaps) => {
    const result = await runSimulation({ settings: { ...busy, client: { ...lossy, ...settings } }, faults: [] })
    expect(result.violations).toEqual([])
    expect(result.client?.lost).toBeGreaterThan(0)
    expect(result.client?.gaps === 0).toBe(gaps === 'no')
  })
})

describe('the SDK in a world whose connections lose messages just before they break', () => {
  const lossy = { cutEveryMs: 3_000, restartEveryMs: null, lossPercent: 0, breakLossPercent: 50, queueBound: 10_000 } as const
  const busy = { ...settingsOf(1), mode: 'flash', activity: 60, spanMs: 40_000, hasLink: true, liveness: true } as const
  const selections: readonly [string, ClientSettings['selection']][] = [
    ['all types', { types: '*' }],
    ['some types', { types: ['transfer', 'nav'] }],
    ['a value filter', { minValue: '1' }],
    ['the sealed view', { stage: 'sealed' }],
  ]

  describe.each(selections)('with %s', (_, selection) => {
    const client = { ...lossy, selection, fill: false }

    it('finds every one of them', async () => {
      const result = await runSimulation({ settings: { ...busy, client: { ...client, fill: true } }, faults: [] })
      expect(result.violations).toEqual([])
      expect(result.client?.lost).toBeGreaterThan(20)
      // In the sealed view a repetition that is lost looks like a fact that the history cannot give.
      if (selection.stage === undefined) expect(result.client?.gaps).toBe(0)
    })

    it.each([false, true])('finds it, or gives a gap over it, where the tape evicts; filled: %s', async (fill) => {
      const settings = { ...busy, tapeBound: 40, client: { ...client, fill } }
      const result = await runSimulation({ settings, faults: [] })
      expect(result.violations).toEqual([])
      expect(result.client?.gaps).toBeGreaterThan(0)
    })

    it('would not find it if it resumed at the newest message', async () => {
      const modifyInputs = plantedBugs['a client resumes at the newest message']
      const settings = { ...busy, tapeBound: 40, client }
      const result = await runSimulation({ settings, faults: [], ...(modifyInputs && { modifyInputs }) })
      expect(result.violations.map(({ law }) => law)).toContain('I23')
    })
  })
})

describe('the SDK in a world whose tape loses its end', () => {
  const client = { cutEveryMs: null, restartEveryMs: null, lossPercent: 0, queueBound: 10_000 } as const
  const busy = { ...settingsOf(1), mode: 'flash', activity: 60, spanMs: 20_000, hasLink: true, liveness: true } as const
  /** Before the first heartbeat: a resume from the last proven position is no gap of the relay. */
  const powerLost: Fault = { at: 5_000, for: 1_000, target: 'relay', kind: 'powerLost', amount: 0 }
  const selections: readonly [string, ClientSettings['selection'], boolean][] = [
    ['all types', { types: '*' }, false],
    ['some types', { types: ['transfer', 'nav'] }, false],
    ['a value filter', { minValue: '1' }, false],
    ['the sealed view', { stage: 'sealed' }, false],
    ['gaps that are filled', {}, true],
  ]

  it.each(selections)('says what the tape has lost, with %s', async (_, selection, fill) => {
    const settings = { ...busy, client: { ...client, selection, fill } }
    const result = await runSimulation({ settings, faults: [powerLost] })
    expect(result.violations).toEqual([])
    expect(result.client?.gaps).toBe(1)
    const modifyInputs = plantedBugs['a client says nothing of what the tape has lost']
    const silent = await runSimulation({ settings, faults: [powerLost], ...(modifyInputs && { modifyInputs }) })
    expect(silent.violations.map(({ law }) => law)).toContain('I23')
  })
})
