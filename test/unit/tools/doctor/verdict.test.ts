import { describe, expect, it } from 'vitest'
import type { Trial } from '../../../../src/tools/doctor/source-trial.ts'
import { verdictOf } from '../../../../src/tools/doctor/verdict.ts'

const trialOf = (source: Trial['source'], reason: Trial['reason'], trial: Partial<Trial> = {}): Trial => ({
  ...{ source, reason, isWrongChain: false, isDecided: true, hasNewBlocks: true, sealedLogs: 0 },
  ...trial,
})
const facts = { hasTokens: true, isReachable: true }

describe('the verdict', () => {
  it.each([
    [trialOf('pendingLogs', 'ok'), facts, true, /^pendingLogs, reason ok: the node pushes/, null],
    [trialOf('poll', 'ok'), facts, true, /^poll, reason ok: .*no UPSTREAM_WS_URL is set/, /set UPSTREAM_WS_URL/],
    [trialOf('poll', 'silent'), facts, true, /^poll, reason silent: .*pushes nothing/, /set UPSTREAM_WS_URL/],
    [trialOf('poll', 'unreachable'), facts, true, /^poll, reason unreachable: .*no socket/, /set UPSTREAM_WS_URL/],
    [trialOf('sealed', 'no_pending'), facts, true, /^sealed, reason no_pending: .*pre-confirms nothing/, /Denim/],
    [trialOf('sealed', 'stale_head'), facts, true, /^sealed, reason stale_head: .*stands still/, /compare/],
    [
      trialOf('down', 'unreachable'),
      facts,
      false,
      /^down, reason unreachable: nothing arrives/,
      /^check UPSTREAM_RPC_URL and UPSTREAM_WS_URL$/,
    ],
    [trialOf('down', 'unreachable', { isDecided: false }), facts, false, /^down/, /--timeout/],
    [trialOf('down', 'unreachable', { isWrongChain: true }), facts, false, /^down, reason wrong_chain: every node/, /CHAIN_ID/],
    [trialOf('poll', 'ok'), { ...facts, hasTokens: false }, false, /^poll, reason no_list: no list/, /STOCKS_API_URL/],
  ] as const)('of %j, with %j, is ok: %s', (trial, of, ok, message, advice) => {
    const verdict = verdictOf(trial, of)
    expect(verdict).toMatchObject({ ok, source: trial.source })
    expect(verdict.message).toMatch(message)
    if (advice === null) expect(verdict.advice).toBeNull()
    else expect(verdict.advice).toMatch(advice)
  })
})
