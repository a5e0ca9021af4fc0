import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { LogMemory, type PendingLog, type ReceivedLogs } from '../../../../../src/relay/chain/logs/log-memory.ts'
import type { Log } from '../../../../../src/relay/chain/logs/log-parser.ts'
import { blockHash } from '../node-json.ts'
import {
  announcement,
  buildLogs,
  describeLog,
  endAnnouncement,
  inTx,
  type LogContent,
  memo,
  seized,
  transfer,
} from './fold-fixture.ts'

const received = (logs: readonly Log[], via: ReceivedLogs['via'] = 'pendingLogs'): ReceivedLogs => ({ logs, via, receivedAt: 7 })

/** A memory that receives logs of these contents by their indexes. `poll` stands for the source of the rest. */
const openMemory = (...contents: readonly LogContent[]) => {
  const memory = new LogMemory()
  const logs = buildLogs(contents)
  const fold = (...batch: readonly ReceivedLogs[]) => {
    const { pendingLogs, repeated } = memory.fold(batch)
    return { changed: pendingLogs.map(summarise), repeated }
  }
  const at = (...indexes: readonly number[]) => indexes.flatMap((index) => logs[index] ?? [])
  return { memory, logs, at, fold, push: (...indexes: readonly number[]) => fold(received(at(...indexes))) }
}
const summarise = ({ decodedLog, isKnown }: PendingLog): string => `${isKnown ? 'known ' : ''}${describeLog(decodedLog)}`

describe('pre-confirmed logs', () => {
  it('are found by their place in the chain until their block is settled', () => {
    const { memory, logs, push } = openMemory(transfer(), memo(7), transfer())
    push(2, 0)
    const find = (log: Log | undefined) => log && memory.find(log.blockNumber, log.transactionHash, log.logIndex)
    expect(logs.map((log) => find(log) === log)).toEqual([true, false, true])
    const [first] = logs
    expect(find(first && { ...first, blockNumber: first.blockNumber + 1 })).toBeUndefined()
    expect(find(first && { ...first, transactionHash: blockHash(9) })).toBeUndefined()
    memory.forgetSettled(first?.blockNumber ?? 0)
    expect(logs.map(find)).toEqual([undefined, undefined, undefined])
  })

  it('are returned in log order, the transactions in order of arrival', () => {
    const { push } = openMemory(transfer(1), transfer(2), inTx(1, transfer(3)))
    expect(push(2, 1, 0).changed).toEqual(['2 Transfer', '0 Transfer', '1 Transfer'])
  })

  it('are returned only if they are new or mean something else', () => {
    const { push } = openMemory(transfer(1), announcement('a'), transfer(2), endAnnouncement('a'))
    expect(push(0, 1, 2).changed).toEqual(['0 Transfer', '1 Announcement', '2 Transfer'])
    expect(push(3).changed).toEqual(['known 1 Announcement, closed around 2'])
  })

  it('that are known are counted as repeated', () => {
    const { push } = openMemory(transfer(), memo(7))
    push(0, 1)
    expect(push(0, 1, 0)).toEqual({ changed: [], repeated: 3 })
  })

  it('change an earlier push, but a poll never does', () => {
    const { logs, fold } = openMemory(transfer(1))
    const [before] = logs
    const [after] = buildLogs([memo(1)])
    if (!before || !after) throw new Error('no log')
    fold(received([before]))
    expect(fold(received([after], 'poll'))).toEqual({ changed: [], repeated: 1 })
    expect(fold(received([after]))).toEqual({ changed: ['known 0 Memo'], repeated: 0 })
  })

  it('lose the memo that another log replaces', () => {
    const { fold, push } = openMemory(transfer(1), memo(7))
    push(0, 1)
    const replaced = buildLogs([transfer(1), transfer(2)]).slice(1)
    expect(fold(received(replaced)).changed).toEqual(['known 0 Transfer', 'known 1 Transfer'])
  })

  it.each([
    ['transfers', [transfer()]],
    ['transfers with memos', [transfer(), memo(7)]],
    ['memos', [memo(7)]],
  ])('that are %s are not folded again for each later log of their transaction', (_, contents) => {
    const { logs, push, memory } = openMemory(...Array.from({ length: 20 }, () => contents).flat())
    const [first, ...later] = logs
    if (!first) throw new Error('no log')
    const readAddress = vi.fn(() => first.address)
    memory.fold([received([Object.defineProperty({ ...first }, 'address', { get: readAddress })])])
    push(1, 2)
    readAddress.mockClear()
    for (const index of later.keys()) push(index + 1)
    expect(readAddress).not.toHaveBeenCalled()
  })

  it('of a settled block are repeated, until a reorganisation may have removed it', () => {
    const { memory, push } = openMemory(transfer(1), transfer(2))
    push(0)
    memory.forgetSettled(5)
    expect(push(0, 1)).toEqual({ changed: [], repeated: 2 })
    memory.reopenFrom(5)
    expect(push(0).changed).toEqual(['0 Transfer'])
  })

  it('are never folded across blocks', () => {
    const { at, fold } = openMemory(transfer(), memo(7))
    const later = at(1).map((log) => ({ ...log, blockNumber: 6, key: log.key.replace(/^5/, '6') }))
    expect(fold(received([...at(0), ...later])).changed).toEqual(['0 Transfer', '1 Memo'])
  })

  it('beyond the bound are forgotten with the oldest block', () => {
    const { memory, at, fold, push } = openMemory(transfer())
    push(0)
    const [log] = at(0)
    if (!log) throw new Error('no log')
    const more = Array.from({ length: 100_000 }, (_, logIndex) => ({ ...log, blockNumber: 6, logIndex, key: `6-${logIndex}` }))
    expect(memory.fold([received(more)]).repeated).toBe(0)
    expect(fold(received(more.slice(-1)))).toEqual({ changed: [], repeated: 1 })
    expect(push(0)).toEqual({ changed: ['0 Transfer'], repeated: 0 })
  })

  it('mean in the end what they mean in their sealed block, however they arrive', () => {
    const [start, end] = [announcement('a'), endAnnouncement('a')]
    const content = fc.constantFrom(transfer(1), transfer(2), seized(1), seized(2), memo(7), start, end)
    const arrivals = fc.array(fc.tuple(content, fc.nat(1), fc.nat(), fc.nat(5)), { maxLength: 12 })
    fc.assert(
      fc.property(arrivals, (rows) => {
        const { memory, logs } = openMemory(...rows.map(([row, tx]) => inTx(tx, row)))
        const meanings = new Map<string, string>()
        const arriving = logs
          .map((log, index) => ({ log, order: rows[index]?.[2] ?? 0, turn: rows[index]?.[3] ?? 0 }))
          .sort((a, b) => a.turn - b.turn || a.order - b.order)
        for (const turn of Map.groupBy(arriving, (row) => row.turn).values())
          for (const { decodedLog } of memory.fold([received(turn.map(({ log }) => log))]).pendingLogs)
            meanings.set(decodedLog.log.key, describeLog(decodedLog))
        const { decodedLogs, parts } = memory.foldBlock({ number: 5, hash: blockHash(5), timestamp: null, logs })
        for (const { key } of parts) meanings.delete(key)
        expect([...meanings.values()].sort()).toEqual(decodedLogs.map(describeLog).sort())
      }),
      { numRuns: 300 },
    )
  })
})

describe('the logs of a sealed block', () => {
  it('mean what they contain, not what was pushed under their keys', () => {
    const { memory, push } = openMemory(transfer(1), memo(7))
    push(0, 1)
    const sealed = buildLogs([transfer(2)])
    const { decodedLogs } = memory.foldBlock({ number: 5, hash: blockHash(5), timestamp: 9, logs: sealed })
    expect(decodedLogs).toMatchObject([{ decoded: { amount: 2n }, memo: null, log: { blockHash: blockHash(5) } }])
  })

  it('are returned once each', () => {
    const { memory, logs } = openMemory(transfer(1), transfer(2))
    const sealed = { number: 5, hash: blockHash(5), timestamp: null, logs: [...logs, ...logs] }
    expect(memory.foldBlock(sealed).decodedLogs.map(describeLog)).toEqual(['0 Transfer', '1 Transfer'])
  })
})
