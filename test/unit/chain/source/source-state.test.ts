import { describe, expect, it } from 'vitest'
import { Verdict } from '../../../../src/chain/source/state.ts'

const SILENCE_MS = 3_000

/** A verdict with a clock that the test moves; what it says is what is news. */
const open = ({ hasLink = true } = {}) => {
  const clock = { now: 0 }
  const verdict = new Verdict({ hasLink, silenceMs: SILENCE_MS, now: () => clock.now })
  const said = (begun = true) => {
    const news = verdict.news(begun)
    return news ? `${news.source} ${news.reason}` : null
  }
  /** Looks so often, half a second apart. */
  const look = (shown: Parameters<Verdict['looked']>[0], times = 1) => {
    for (let time = 0; time < times; time += 1) {
      verdict.looked(shown)
      clock.now += 500
    }
  }
  return { clock, verdict, said, look }
}
/** One whose link pushes. */
const pushing = () => {
  const opened = open()
  opened.verdict.linked('pushing')
  return opened
}

describe('the source', () => {
  it('is not known before anything is', () => {
    const { verdict, said, look } = open()
    expect(said()).toBeNull()
    look('preconfirmed')
    expect(said()).toBeNull()
    verdict.linked('down')
    expect(said(false)).toBeNull()
    expect(said()).toBe('poll unreachable')
  })

  it('is what is pushed once it is, without more evidence', () => {
    const { said } = pushing()
    expect(said(false)).toBeNull()
    expect(said()).toBe('pendingLogs ok')
    expect(said()).toBeNull()
  })

  it.each([
    ['none', 'poll ok'],
    ['down', 'poll unreachable'],
    ['refused', 'poll refused'],
  ] as const)('with a link that is %s and something to poll is %s', (link, standing) => {
    const { verdict, said, look } = open({ hasLink: link !== 'none' })
    if (link !== 'none') verdict.linked(link)
    look('preconfirmed')
    expect(said()).toBe(standing)
  })

  it.each([
    ['latest', 'sealed no_pending'],
    ['null', 'sealed no_pending'],
    ['behind', 'sealed behind'],
  ] as const)('where the pending state is %s from the beginning is %s', (shown, standing) => {
    const { said, look } = open({ hasLink: false })
    look(shown)
    expect(said()).toBe(standing)
  })

  it('polls on while nothing shows between two flashblocks, and not for longer', () => {
    const { said, look } = open({ hasLink: false })
    look('preconfirmed')
    expect(said()).toBe('poll ok')
    look('null', 4)
    expect(said()).toBeNull()
    look('null')
    expect(said()).toBe('sealed no_pending')
    look('preconfirmed')
    expect(said()).toBe('poll ok')
  })

  it('polls on where nothing shows at once however long, if it was looked for twice only', () => {
    const { clock, said, look } = open({ hasLink: false })
    look('preconfirmed')
    look('null')
    clock.now += 60_000
    look('null')
    expect(said()).toBe('poll stale_head')
  })
})

describe('what is pushed', () => {
  it('is distrusted on evidence, and is polled for then', () => {
    const { verdict, said, look } = pushing()
    said()
    look('preconfirmed')
    verdict.doubted('silent')
    expect(verdict.pushing).toBe(false)
    expect(said()).toBe('poll silent')
    verdict.doubted('behind')
    expect(said()).toBe('poll behind')
  })

  it('is trusted again only when it delivers in time, however often it is subscribed to', () => {
    const { verdict, said, look } = pushing()
    said()
    look('preconfirmed')
    verdict.doubted('silent')
    verdict.linked('pushing')
    verdict.linked('refused')
    verdict.linked('down')
    verdict.linked('pushing')
    expect(verdict.pushing).toBe(false)
    expect(said()).toBe('poll silent')
    verdict.delivered()
    expect(said()).toBe('pendingLogs ok')
  })

  it('cannot be distrusted where nothing is pushed', () => {
    const { verdict, said } = open()
    verdict.linked('refused')
    verdict.doubted('silent')
    verdict.linked('pushing')
    expect(said()).toBe('pendingLogs ok')
  })

  it('is nothing where the latest block is shown again and again as what is pending', () => {
    const { verdict, said, look } = pushing()
    said()
    look('latest', 4)
    expect(said()).toBeNull()
    look('latest')
    expect(said()).toBe('sealed no_pending')
    expect(verdict.wantsProbe).toBe(true)
  })

  it('is not held to be nothing because the pending state is null, nor once it has delivered', () => {
    const { verdict, said, look } = pushing()
    said()
    look('null', 10)
    expect(said()).toBeNull()
    verdict.delivered()
    look('latest', 10)
    expect(said()).toBeNull()
  })

  it('is proven by what it delivers and by what its node shows, until it is lost or doubted', () => {
    const { verdict, look } = pushing()
    expect(verdict.proven).toBe(false)
    look('preconfirmed')
    expect(verdict.proven).toBe(true)
    verdict.linked('down')
    expect(verdict.proven).toBe(false)
    verdict.linked('pushing')
    verdict.delivered()
    expect(verdict.proven).toBe(true)
    verdict.doubted('silent')
    expect(verdict.proven).toBe(false)
    look('preconfirmed')
    expect(verdict.proven).toBe(false)
  })

  it('is not refused because sealed logs are subscribed to beside it', () => {
    const { verdict, said } = pushing()
    verdict.linked('refused')
    expect(said()).toBe('pendingLogs ok')
  })

  it('is tried again where it was refused or distrusted, and there is a link', () => {
    const { verdict } = open()
    expect(verdict.wantsProbe).toBe(false)
    verdict.linked('refused')
    expect(verdict.wantsProbe).toBe(true)
    verdict.linked('pushing')
    expect(verdict.wantsProbe).toBe(false)
    verdict.doubted('silent')
    expect(verdict.wantsProbe).toBe(true)
    verdict.linked('down')
    expect(verdict.wantsProbe).toBe(false)
  })
})

describe('an upstream', () => {
  it('is down when a question has waited for too long, and back with any answer', () => {
    const { clock, verdict, said, look } = open({ hasLink: false })
    look('preconfirmed')
    said()
    verdict.asked()
    clock.now += 2_000
    verdict.asked()
    clock.now += 1_000
    expect(said()).toBeNull()
    clock.now += 1
    expect(said()).toBe('down unreachable')
    verdict.answered()
    expect(said()).toBe('poll ok')
  })

  it('of which nothing was asked is not down', () => {
    const { clock, said, look } = open({ hasLink: false })
    look('preconfirmed')
    said()
    clock.now += 20_000
    expect(said()).toBeNull()
  })

  it('that cannot be asked but pushes is not down', () => {
    const { clock, verdict, said } = pushing()
    said()
    verdict.asked()
    clock.now += SILENCE_MS + 1
    expect(said()).toBe('pendingLogs unreachable')
    expect(said(false)).toBe('down unreachable')
  })

  it('whose head rests for half a minute is stale, whichever way it is heard', () => {
    const { clock, verdict, said, look } = pushing()
    said()
    look('preconfirmed')
    clock.now = 30_000
    expect(said()).toBeNull()
    clock.now += 1
    expect(said()).toBe('pendingLogs stale_head')
    verdict.linked('down')
    expect(said()).toBe('poll stale_head')
    verdict.headed()
    expect(said()).toBe('poll unreachable')
  })
})
