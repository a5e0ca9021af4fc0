import { describe, expect, it } from 'vitest'
import { SourceState } from '../../../../src/chain/source/state.ts'

const SILENCE_MS = 3_000

/** A source state with a clock that the test moves. */
const openSourceState = ({ hasLink = true } = {}) => {
  const clock = { now: 0 }
  const state = new SourceState({ hasLink, silenceMs: SILENCE_MS, now: () => clock.now })
  const readStatus = (isStarted = true) => {
    const status = state.takeStatusChange(isStarted)
    return status ? `${status.source} ${status.reason}` : null
  }
  /** Polls this often, half a second apart. */
  const poll = (pending: Parameters<SourceState['pendingPolled']>[0], times = 1) => {
    for (let count = 0; count < times; count += 1) {
      state.pendingPolled(pending)
      clock.now += 500
    }
  }
  return { clock, state, readStatus, poll }
}
/** A source state with a pushing link. */
const openPushing = () => {
  const opened = openSourceState()
  opened.state.setLink('pushing')
  return opened
}

describe('the source state', () => {
  it('has no status before there is evidence', () => {
    const { state, readStatus, poll } = openSourceState()
    expect(readStatus()).toBeNull()
    poll('preconfirmed')
    expect(readStatus()).toBeNull()
    state.setLink('down')
    expect(readStatus(false)).toBeNull()
    expect(readStatus()).toBe('poll unreachable')
  })

  it('trusts a pushing link without more evidence', () => {
    const { readStatus } = openPushing()
    expect(readStatus(false)).toBeNull()
    expect(readStatus()).toBe('pendingLogs ok')
    expect(readStatus()).toBeNull()
  })

  it.each([
    ['none', 'poll ok'],
    ['down', 'poll unreachable'],
    ['refused', 'poll refused'],
  ] as const)('with a link that is %s and pre-confirmations is %s', (link, status) => {
    const { state, readStatus, poll } = openSourceState({ hasLink: link !== 'none' })
    if (link !== 'none') state.setLink(link)
    poll('preconfirmed')
    expect(readStatus()).toBe(status)
  })

  it.each([
    ['latest', 'sealed no_pending'],
    ['null', 'sealed no_pending'],
    ['behind', 'sealed behind'],
  ] as const)('with a first pending block that is %s is %s', (pending, status) => {
    const { readStatus, poll } = openSourceState({ hasLink: false })
    poll(pending)
    expect(readStatus()).toBe(status)
  })

  it('keeps polling through gaps between flashblocks, but not longer', () => {
    const { readStatus, poll } = openSourceState({ hasLink: false })
    poll('preconfirmed')
    expect(readStatus()).toBe('poll ok')
    poll('null', 4)
    expect(readStatus()).toBeNull()
    poll('null')
    expect(readStatus()).toBe('sealed no_pending')
    poll('preconfirmed')
    expect(readStatus()).toBe('poll ok')
  })

  it('keeps polling if no pending block was seen only twice, however far apart', () => {
    const { clock, readStatus, poll } = openSourceState({ hasLink: false })
    poll('preconfirmed')
    poll('null')
    clock.now += 60_000
    poll('null')
    expect(readStatus()).toBe('poll stale_head')
  })
})

describe('a pushing link in the source state', () => {
  it('is replaced by polling on evidence', () => {
    const { state, readStatus, poll } = openPushing()
    readStatus()
    poll('preconfirmed')
    state.markDoubted('silent')
    expect(state.isPushing).toBe(false)
    expect(readStatus()).toBe('poll silent')
    state.markDoubted('behind')
    expect(readStatus()).toBe('poll behind')
  })

  it('is trusted again only after timely delivery, however often it is subscribed', () => {
    const { state, readStatus, poll } = openPushing()
    readStatus()
    poll('preconfirmed')
    state.markDoubted('silent')
    state.setLink('pushing')
    state.setLink('refused')
    state.setLink('down')
    state.setLink('pushing')
    expect(state.isPushing).toBe(false)
    expect(readStatus()).toBe('poll silent')
    state.markDelivered()
    expect(readStatus()).toBe('pendingLogs ok')
  })

  it('cannot be distrusted before it pushes', () => {
    const { state, readStatus } = openSourceState()
    state.setLink('refused')
    state.markDoubted('silent')
    state.setLink('pushing')
    expect(readStatus()).toBe('pendingLogs ok')
  })

  it('is distrusted if the node shows the latest block as pending again and again', () => {
    const { state, readStatus, poll } = openPushing()
    readStatus()
    poll('latest', 4)
    expect(readStatus()).toBeNull()
    poll('latest')
    expect(readStatus()).toBe('sealed no_pending')
    expect(state.shouldProbe).toBe(true)
  })

  it('is not distrusted for a missing pending block, nor after a delivery', () => {
    const { state, readStatus, poll } = openPushing()
    readStatus()
    poll('null', 10)
    expect(readStatus()).toBeNull()
    state.markDelivered()
    poll('latest', 10)
    expect(readStatus()).toBeNull()
  })

  it('is proven by delivery or by a pre-confirmed block, until it is lost or distrusted', () => {
    const { state, poll } = openPushing()
    expect(state.isProven).toBe(false)
    poll('preconfirmed')
    expect(state.isProven).toBe(true)
    state.setLink('down')
    expect(state.isProven).toBe(false)
    state.setLink('pushing')
    state.markDelivered()
    expect(state.isProven).toBe(true)
    state.markDoubted('silent')
    expect(state.isProven).toBe(false)
    poll('preconfirmed')
    expect(state.isProven).toBe(false)
  })

  it('is not refused by a refusal of sealed logs beside it', () => {
    const { state, readStatus } = openPushing()
    state.setLink('refused')
    expect(readStatus()).toBe('pendingLogs ok')
  })

  it('is probed after a refusal or distrust while it is up', () => {
    const { state } = openSourceState()
    expect(state.shouldProbe).toBe(false)
    state.setLink('refused')
    expect(state.shouldProbe).toBe(true)
    state.setLink('pushing')
    expect(state.shouldProbe).toBe(false)
    state.markDoubted('silent')
    expect(state.shouldProbe).toBe(true)
    state.setLink('down')
    expect(state.shouldProbe).toBe(false)
  })
})

describe('an upstream in the source state', () => {
  it('is down after a request waited too long, and back with any answer', () => {
    const { clock, state, readStatus, poll } = openSourceState({ hasLink: false })
    poll('preconfirmed')
    readStatus()
    state.requestSent()
    clock.now += 2_000
    state.requestSent()
    clock.now += 1_000
    expect(readStatus()).toBeNull()
    clock.now += 1
    expect(readStatus()).toBe('down unreachable')
    state.responseReceived()
    expect(readStatus()).toBe('poll ok')
  })

  it('without requests is not down', () => {
    const { clock, readStatus, poll } = openSourceState({ hasLink: false })
    poll('preconfirmed')
    readStatus()
    clock.now += 20_000
    expect(readStatus()).toBeNull()
  })

  it('that fails requests but pushes is not down', () => {
    const { clock, state, readStatus } = openPushing()
    readStatus()
    state.requestSent()
    clock.now += SILENCE_MS + 1
    expect(readStatus()).toBe('pendingLogs unreachable')
    expect(readStatus(false)).toBe('down unreachable')
  })

  it('without a new head for half a minute is stale, pushed or polled', () => {
    const { clock, state, readStatus, poll } = openPushing()
    readStatus()
    poll('preconfirmed')
    clock.now = 30_000
    expect(readStatus()).toBeNull()
    clock.now += 1
    expect(readStatus()).toBe('pendingLogs stale_head')
    state.setLink('down')
    expect(readStatus()).toBe('poll stale_head')
    state.headReceived()
    expect(readStatus()).toBe('poll unreachable')
  })
})
