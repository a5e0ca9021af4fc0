import { setTimeout as wait } from 'node:timers/promises'
import { type Hex, readQuantity } from '../../lib/hex.ts'
import { createRedactor, redactDeep } from '../../lib/redact.ts'
import { ChainIdentity } from '../../relay/chain/rpc/chain-identity.ts'
import { UpstreamError } from '../../relay/chain/rpc/upstream-error.ts'
import type { Config } from '../../relay/config/config.ts'
import type { Host } from '../../relay/host.ts'
import { EndpointProbe } from './endpoint-probe.ts'
import { adviceFor, type Finding, fail, type NamedOutcome, type Outcome, ok, originOf, skip, timeUp, warn } from './finding.ts'
import { lagOutcome, type SeenHead } from './head-lag.ts'
import { type ListReport, probeList } from './list-probe.ts'
import { runRpcChecks } from './rpc-checks.ts'
import { probeSocket, type SocketReport, socketFindings } from './socket-probe.ts'
import { type Trial, trySource } from './source-trial.ts'
import { type Verdict, verdictOf } from './verdict.ts'

type ExaminationInputs = Pick<Host, 'clock' | 'wallTime' | 'random'> & { readonly config: Config; readonly timeoutMs: number }

export type Examination = { readonly verdict: Verdict; readonly findings: readonly Finding[] }

/** Share of the time in which the source may run. The default time shows whether a socket is silent if blocks take 2 s. */
const TRIAL_SHARE = 0.8
/** Time for which the examination still watches the sockets after the source is known. */
const SOCKET_GRACE_MS = 2_000
/** Share of the time in which the checks that need tokens wait for the list. */
const LIST_SHARE = 0.5
const MESSAGE_BOUND_CHARS = 300
const CLIENT_BOUND_CHARS = 120

/** Examines all upstreams at the same time. Meanwhile `trySource` runs the relay's code for the source on the same upstreams. */
export async function examine(inputs: ExaminationInputs): Promise<Examination> {
  const { config, timeoutMs, wallTime } = inputs
  const { upstreamRpcUrl, upstreamWsUrl, receiptsRpcUrl = [] } = config.chain
  const [deadline, trialDeadline] = [AbortSignal.timeout(timeoutMs), AbortSignal.timeout(TRIAL_SHARE * timeoutMs)]
  const list = probeList({ config: config.tokens, timeoutMs, wallTime })
  const addresses = list.then((read) => read.addresses)
  const noAddresses = wait(timeoutMs * LIST_SHARE, [], { ref: false })
  const shared = { ...inputs, deadline, addresses: Promise.race([addresses, noAddresses]) }
  const nodes = Promise.all(upstreamRpcUrl.map((url) => examineNode(url, receiptsRpcUrl.length === 0, shared)))
  const receipts = Promise.all(receiptsRpcUrl.map((url) => examineReceipts(url, shared)))
  const trial = trySource({ ...inputs, addresses, deadline: endingEarly(trialDeadline, nodes.then(areUnreachable)) })
  const afterTrial = trial.then(() => wait(SOCKET_GRACE_MS, true, { ref: false }))
  const socketInputs = { ...shared, socketDeadline: endingEarly(trialDeadline, afterTrial), mayEnd: nodes }
  const sockets = Promise.all(upstreamWsUrl.map((url) => examineSocket(url, socketInputs)))
  const examined = await Promise.all([list, trial, nodes, sockets, receipts])
  const [read, source, examinedNodes, examinedSockets, examinedReceipts] = examined
  const withFindings = examinedSockets.map(({ socket, ...endpoint }) => ({
    ...endpoint,
    outcomes: socketFindings(socket, source, read.addresses.length > 0),
  }))
  return conclude(inputs, [...withLags(examinedNodes, examinedSockets), ...withFindings, ...examinedReceipts], read, source)
}

function conclude(
  { config }: ExaminationInputs,
  examined: readonly ExaminedEndpoint[],
  list: ListReport,
  trial: Trial,
): Examination {
  const { upstreamRpcUrl, upstreamWsUrl, receiptsRpcUrl = [], chainId = null } = config.chain
  const { stocksApiUrl } = config.tokens
  const urls = [...upstreamRpcUrl, ...upstreamWsUrl, ...receiptsRpcUrl, stocksApiUrl].filter((url) => url !== '')
  const redact = createRedactor(urls)
  const chain = new ChainIdentity(chainId, 'CHAIN_ID')
  const findings = [...examined.flatMap((endpoint) => withChain(endpoint, chain)), ...list.findings]
  return {
    verdict: verdictOf(trial, { hasTokens: list.addresses.length > 0, isReachable: !areUnreachable(examined) }),
    findings: findings.map((finding) => ({
      ...finding,
      value: redactDeep(finding.value, redact),
      message: printable(redact(finding.message)),
    })),
  }
}

/** Replaces control characters, because the text of an upstream must not control the terminal that shows it. */
const printable = (text: string): string => text.replaceAll(/\p{Cc}+/gu, ' ').slice(0, MESSAGE_BOUND_CHARS)

type ExaminedEndpoint = {
  readonly role: 'rpc' | 'ws' | 'receipts'
  readonly target: string
  readonly chainId: number | null
  readonly reach: Outcome
  readonly outcomes: readonly NamedOutcome[]
  /** The endpoint's newest block at the beginning and at the end of its examination. */
  readonly heads: readonly SeenHead[]
}

type ExaminedSocket = ExaminedEndpoint & { readonly socket: SocketReport }

type EndpointInputs = ExaminationInputs & { readonly deadline: AbortSignal; readonly addresses: Promise<readonly Hex[]> }

const settingOf = {
  rpc: 'UPSTREAM_RPC_URL (--rpc)',
  ws: 'UPSTREAM_WS_URL (--ws)',
  receipts: 'RECEIPTS_RPC_URL (--receipts)',
} as const

async function examineEndpoint(
  role: ExaminedEndpoint['role'],
  url: string,
  { deadline, wallTime }: EndpointInputs,
  check: (probe: EndpointProbe, report: (name: string, outcome: Outcome) => void) => Promise<void>,
): Promise<ExaminedEndpoint> {
  const probe = new EndpointProbe(url, deadline, wallTime)
  const outcomes: [string, Outcome][] = []
  const endpoint = { role, target: originOf(url), outcomes }
  try {
    const chainId = await readChainId(probe)
    // Measures the second answer, because the first one includes the time to connect.
    const before = await readHead(probe)
    const reach = ok(`answers in ${probe.roundTripMs} ms`, probe.roundTripMs)
    await check(probe, (name, outcome) => outcomes.push([name, outcome]))
    return { ...endpoint, chainId, reach, heads: [...before, ...(await readHead(probe))] }
  } catch (failure) {
    if (!(failure instanceof UpstreamError)) throw failure
    return { ...endpoint, chainId: null, reach: fail(failure.message, adviceFor(failure, settingOf[role])), heads: [] }
  }
}

/** Reads the newest block. `at` is the time of the request: the endpoint knew the block then, or later. */
async function readHead(probe: EndpointProbe): Promise<readonly SeenHead[]> {
  const at = performance.now()
  const number = readQuantity(await unlessRefused(probe.ask('eth_blockNumber'), () => null))
  return number === null ? [] : [{ number, at }]
}

/** Reads the chain id; null if the node lacks the method. The relay uses a node without it unchecked. */
async function readChainId(probe: EndpointProbe): Promise<number | null> {
  const answer = await unlessRefused(probe.request('eth_chainId', []), (failure) => {
    if (failure.kind !== 'unknown_method') throw failure
    return null
  })
  return readQuantity(answer)
}

/** Turns an `UpstreamError` into a result. Any other failure is a bug, not an answer of the upstream. */
const unlessRefused = <Answer, Other>(
  answer: Promise<Answer>,
  onRefusal: (failure: UpstreamError) => Other,
): Promise<Answer | Other> =>
  answer.catch((failure: unknown) => {
    if (failure instanceof UpstreamError) return onRefusal(failure)
    throw failure
  })

const examineNode = (url: string, hasReceipts: boolean, inputs: EndpointInputs): Promise<ExaminedEndpoint> =>
  examineEndpoint('rpc', url, inputs, async (probe, report) => {
    report('client', await clientOutcome(probe))
    await runRpcChecks({ ...inputs, probe }, report)
    if (hasReceipts) report('receipts', await receiptsOutcome(probe, inputs))
  })

const examineReceipts = (url: string, inputs: EndpointInputs): Promise<ExaminedEndpoint> =>
  examineEndpoint('receipts', url, inputs, async (probe, report) => report('receipts', await receiptsOutcome(probe, inputs)))

async function examineSocket(
  url: string,
  inputs: EndpointInputs & { readonly socketDeadline: AbortSignal; readonly mayEnd: Promise<unknown> },
): Promise<ExaminedSocket> {
  const { addresses, socketDeadline, mayEnd } = inputs
  const [endpoint, socket] = await Promise.all([
    examineEndpoint('ws', url, inputs, async () => {}),
    probeSocket({ url, addresses, mayEnd, deadline: socketDeadline }),
  ])
  return { ...endpoint, socket }
}

/** Compares each node with the newest block that any upstream had shown before the node was asked. */
const withLags = (nodes: readonly ExaminedEndpoint[], sockets: readonly ExaminedSocket[]): readonly ExaminedEndpoint[] =>
  nodes.map((node) => {
    const others = [...nodes.filter((other) => other !== node), ...sockets]
    const seen = others.flatMap(({ chainId, heads }) => (chainId === node.chainId ? heads : []))
    const pushed = sockets.flatMap(({ chainId, socket }) => (chainId === node.chainId ? socket.heads : []))
    const outcome = lagOutcome(node.heads, [...seen, ...pushed])
    return outcome ? { ...node, outcomes: [...node.outcomes, ['lag', outcome]] } : node
  })

/** Omits the other findings of an endpoint that does not answer or is of another chain, because they mean nothing. */
function withChain({ role, target, chainId, reach, outcomes }: ExaminedEndpoint, chain: ChainIdentity): readonly Finding[] {
  const findings = (...named: readonly NamedOutcome[]): readonly Finding[] =>
    named.map(([name, outcome]) => ({ id: `${role}.${name}`, target, ...outcome }))
  if (reach.state !== 'ok') return findings(['reach', reach])
  if (chainId === null) return findings(['reach', reach], ['chain', skip('the node does not answer eth_chainId')], ...outcomes)
  const mismatch = chain.findMismatch(chainId)
  if (mismatch === null) return findings(['reach', reach], ['chain', ok(`chain ${chainId}`, chainId)], ...outcomes)
  const advice = `the relay does not use it: correct ${settingOf[role]}, or CHAIN_ID`
  return findings(['reach', reach], ['chain', fail(mismatch, advice, chainId)])
}

async function clientOutcome(probe: EndpointProbe): Promise<Outcome> {
  const version = await unlessRefused(probe.ask('web3_clientVersion'), () => null)
  return typeof version === 'string'
    ? ok(version.slice(0, CLIENT_BOUND_CHARS), version)
    : skip('the node does not name its program')
}

const receiptsOutcome = (probe: EndpointProbe, { deadline }: EndpointInputs): Promise<Outcome> =>
  unlessRefused(
    probe.request('eth_getBlockReceipts', ['latest']).then(() => ok('eth_getBlockReceipts answers', true)),
    ({ message }) => {
      const advice = 'only clients of /rpc that ask for receipts need it: RECEIPTS_RPC_URL (--receipts) names a node that has it'
      return deadline.aborted ? timeUp : warn(`eth_getBlockReceipts: ${message}`, advice, false)
    },
  )

const areUnreachable = (nodes: readonly ExaminedEndpoint[]): boolean => nodes.every(({ reach }) => reach.state === 'fail')

/** Makes a signal that aborts at the deadline, or when the promise resolves to true or rejects. */
function endingEarly(deadline: AbortSignal, isOver: Promise<boolean>): AbortSignal {
  const early = new AbortController()
  isOver
    .catch(() => true)
    .then((ends) => {
      if (ends) early.abort()
    })
  return AbortSignal.any([deadline, early.signal])
}
