import type { Hex } from '../../lib/hex.ts'
import type { Nav } from '../../protocol/fields.ts'
import type { Config } from '../../relay/config/config.ts'
import type { Host } from '../../relay/host.ts'
import { type ListedToken, parseList } from '../../relay/tokens/list/list-parser.ts'
import { fetchList } from '../../relay/tokens/list/list-poller.ts'
import { navAt } from '../../relay/tokens/nav.ts'
import { counted, type Finding, fail, type Outcome, ok, originOf, reasonOf, warn } from './finding.ts'

/** `addresses` are those of the tokens, in the order in which the relay follows them. */
export type ListReport = { readonly findings: readonly Finding[]; readonly addresses: readonly Hex[] }

type ListInputs = Pick<Host, 'wallTime'> & {
  readonly config: Pick<Config['tokens'], 'stocksApiUrl' | 'navStaleAfterMs'>
  readonly timeoutMs: number
}

/** Limit of the records that a message names. */
const NAMED_RECORDS_BOUND = 3
const HOUR_S = 3_600

export async function probeList({ config, timeoutMs, wallTime }: ListInputs): Promise<ListReport> {
  const { stocksApiUrl, navStaleAfterMs } = config
  const target = stocksApiUrl === '' ? 'STOCKS_API_URL' : originOf(stocksApiUrl)
  const finding = (id: string, outcome: Outcome): Finding => ({ id: `list.${id}`, target, ...outcome })
  if (stocksApiUrl === '') {
    const missing = fail(
      'no list is set: the relay learns from it which tokens to follow',
      'set STOCKS_API_URL (--stocks), or NETWORK=base (--network)',
    )
    return { findings: [finding('reach', missing)], addresses: [] }
  }
  const startedAt = performance.now()
  try {
    const body = await fetchList(stocksApiUrl, timeoutMs)(null)
    const reach = finding('reach', ok(`answers in ${Math.round(performance.now() - startedAt)} ms, ${body.length} bytes`))
    const { tokens, skipped } = parseList(body)
    const listed = [...tokens.values()]
    const checks = [finding('tokens', tokensOutcome(listed)), finding('records', recordsOutcome(skipped))]
    const navs = listed.length === 0 ? [] : [finding('navs', navsOutcome(listed, navStaleAfterMs, wallTime()))]
    return { findings: [reach, ...checks, ...navs], addresses: [...tokens.keys()].sort() }
  } catch (failure) {
    const advice = 'check STOCKS_API_URL (--stocks): the relay publishes nothing before it has read a list'
    return { findings: [finding('reach', fail(`no list: ${reasonOf(failure)}`, advice))], addresses: [] }
  }
}

function tokensOutcome(listed: readonly ListedToken[]): Outcome {
  if (listed.length === 0) return fail('the list is empty', 'wait, or check STOCKS_API_URL (--stocks)', 0)
  const symbols = listed.slice(0, NAMED_RECORDS_BOUND).map(({ symbol }) => symbol)
  const more = listed.length > symbols.length ? ', …' : ''
  return ok(`${counted(listed.length, 'token')}: ${symbols.join(', ')}${more}`, listed.length)
}

function recordsOutcome(skipped: readonly string[]): Outcome {
  if (skipped.length === 0) return ok('every record can be read, none is repeated', { unreadable: 0, repeated: 0 })
  const repeated = skipped.filter((reason) => reason.endsWith('is listed twice')).length
  const unreadable = skipped.length - repeated
  const named = skipped.slice(0, NAMED_RECORDS_BOUND).join('; ')
  return warn(
    `${counted(unreadable, 'unreadable record')}, ${repeated} repeated: ${named}`,
    'the relay skips these records and follows the others: tell the provider of the list',
    { unreadable, repeated },
  )
}

function navsOutcome(listed: readonly ListedToken[], navStaleAfterMs: number, now: number): Outcome {
  const navs = listed.map(({ nav }) => navAt(nav, now, navStaleAfterMs, null))
  const count = (state: Nav['state']) => navs.filter((nav) => nav.state === state).length
  const value = { fresh: count('fresh'), stale: count('stale'), missing: count('missing'), invalid: count('invalid') }
  const ages = navs.flatMap(({ age_s }) => age_s ?? [])
  const oldest_s = ages.length === 0 ? null : Math.max(...ages)
  const counts = `${value.fresh} fresh, ${value.stale} stale, ${value.missing} missing, ${value.invalid} invalid`
  const message = oldest_s === null ? counts : `${counts}; the oldest is ${ageText(oldest_s)} old`
  if (value.stale + value.invalid === 0) return ok(message, { ...value, oldest_s })
  const advice = 'a market that is closed explains stale ones; NAV_STALE_AFTER sets the limit. The relay gives each NAV its state'
  return warn(message, advice, { ...value, oldest_s })
}

const ageText = (seconds: number): string =>
  seconds < 2 * HOUR_S ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / HOUR_S)} h`
