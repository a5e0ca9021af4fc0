import { describe, expect, it } from 'vitest'
import { SourceState } from '../../../../src/chain/source/state.ts'

const SILENCE_MS = 3_000

/** A verdict with a clock that the test moves; what it says is what is news. */
const openSourceState = ({ hasLink = true } = {}) => {
  const clock = { now: 0 }
  const state = new SourceState({ hasLink, silenceMs: SILENCE_MS, now: () => clock.now })
  const readStatus = (begun = true) => {
    const news = state.takeStatusChange(begun)
    return news ? `${news.source} ${news.reason}` : null
  }
  /** Looks so often, half a second apart. */
  const poll = (shown: Parameters<SourceState['pendingPolled']>[0], times = 1) => {
    for (let time = 0; time < times; time += 1) {
      state.pendingPolled(shown)
      clock.now += 500
    }
  }
  return { clock, state, readStatus, poll }
}
/** One whose link pushes. */
const openPushing = () => {
  const opened = openSourceState()
  opened.state.setLink('pushing')
  return opened
}

describe('the source', () => {
  it('is not known before anything is', () => {
    const { state, readStatus, poll } = openSourceState()
    expect(readStatus()).toBeNull()
    poll('preconfirmed')
    expect(readStatus()).toBeNull()
    state.setLink('down')
    expect(readStatus(false)).toBeNull()
    expect(readStatus()).toBe('poll unreachable')
  })

  it('is what is pushed once it is, without more evidence', () => {
    const { readStatus } = openPushing()
    expect(readStatus(false)).toBeNull()
    expect(readStatus()).toBe('pendingLogs ok')
    expect(readStatus()).toBeNull()
  })

  it.each([
    ['none', 'poll ok'],
    ['down', 'poll unreachable'],
    ['refused', 'poll refused'],
  ] as const)('with a link that is %s and something to poll is %s', (link, standing) => {
    const { state, readStatus, poll } = openSourceState({ hasLink: link !== 'none' })
    if (link !== 'none') state.setLink(link)
    poll('preconfirmed')
    expect(readStatus()).toBe(standing)
  })

  it.each([
    ['latest', 'sealed no_pending'],
    ['null', 'sealed no_pending'],
    ['behind', 'sealed behind'],
  ] as const)('where the pending state is %s from the beginning is %s', (shown, standing) => {
    const { readStatus, poll } = openSourceState({ hasLink: false })
    poll(shown)
    expect(readStatus()).toBe(standing)
  })

  it('polls on while nothing shows between two flashblocks, and not for longer', () => {
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

  it('polls on where nothing shows at once however long, if it was looked for twice only', () => {
    const { clock, readStatus, poll } = openSourceState({ hasLink: false })
    poll('preconfirmed')
    poll('null')
    clock.now += 60_000
    poll('null')
    expect(readStatus()).toBe('poll stale_head')
  })
})

describe('what is pushed', () => {
  it('is distrusted on evidence, and is polled for then', () => {
    const { state, readStatus, poll } = openPushing()
    readStatus()
    poll('preconfirmed')
    state.markDoubted('silent')
    expect(state.isPushing).toBe(false)
    expect(readStatus()).toBe('poll silent')
    state.markDoubted('behind')
    expect(readStatus()).toBe('poll behind')
  })

  it('is trusted again only when it delivers in time, however often it is subscribed to', () => {
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

  it('cannot be distrusted where nothing is pushed', () => {
    const { state, readStatus } = openSourceState()
    state.setLink('refused')
    state.markDoubted('silent')
    state.setLink('pushing')
    expect(readStatus()).toBe('pendingLogs ok')
  })

  it('is nothing where the latest block is shown again and again as what is pending', () => {
    const { state, readStatus, poll } = openPushing()
    readStatus()
    poll('latest', 4)
    expect(readStatus()).toBeNull()
    poll('latest')
    expect(readStatus()).toBe('sealed no_pending')
    expect(state.shouldProbe).toBe(true)
  })

  it('is not held to be nothing because the pending state is null, nor once it has delivered', () => {
    const { state, readStatus, poll } = openPushing()
    readStatus()
    poll('null', 10)
    expect(readStatus()).toBeNull()
    state.markDelivered()
    poll('latest', 10)
    expect(readStatus()).toBeNull()
  })

  it('is proven by what it delivers and by what its node shows, until it is lost or doubted', () => {
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

  it('is not refused because sealed logs are subscribed to beside it', () => {
    const { state, readStatus } = openPushing()
    state.setLink('refused')
    expect(readStatus()).toBe('pendingLogs ok')
  })

  it('is tried again where it was refused or distrusted, and there is a link', () => {
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

describe('an upstream', () => {
  it('is down when a question has waited for too long, and back with any answer', () => {
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

  it('of which nothing was asked is not down', () => {
    const { clock, readStatus, poll } = openSourceState({ hasLink: false })
    poll('preconfirmed')
    readStatus()
    clock.now += 20_000
    expect(readStatus()).toBeNull()
  })

  it('that cannot be asked but pushes is not down', () => {
    const { clock, state, readStatus } = openPushing()
    readStatus()
    state.requestSent()
    clock.now += SILENCE_MS + 1
    expect(readStatus()).toBe('pendingLogs unreachable')
    expect(readStatus(false)).toBe('down unreachable')
  })

  it('whose head rests for half a minute is stale, whichever way it is heard', () => {
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
