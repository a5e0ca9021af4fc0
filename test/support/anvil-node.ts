import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { encodeFunctionData, parseAbi } from 'viem/utils'
import { z } from 'zod'
import { compileContract } from './compile-solidity.ts'

const require = createRequire(import.meta.url)

const abi = parseAbi([
  'function mint(address to, uint256 amount)',
  'function burn(uint256 amount)',
  'function transfer(address to, uint256 amount)',
  'function approve(address spender, uint256 amount)',
  'function announce(string id, uint256 to, uint256 at)',
  'function pause(uint8[] features)',
  'function seizeWithMemo(address from, address to, uint256 amount, bytes32 memo)',
])

type Hex = `0x${string}`
/** A call to the token. */
type TokenCall =
  | { readonly functionName: 'mint' | 'transfer' | 'approve'; readonly args: readonly [Hex, bigint] }
  | { readonly functionName: 'burn'; readonly args: readonly [bigint] }
  | { readonly functionName: 'announce'; readonly args: readonly [id: string, to: bigint, at: bigint] }
  | { readonly functionName: 'pause'; readonly args: readonly [readonly number[]] }
  | { readonly functionName: 'seizeWithMemo'; readonly args: readonly [Hex, Hex, bigint, Hex] }

/** Accounts that anvil funds with ether, the same ones each time. */
export const ACCOUNTS = ['0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266', '0x70997970c51812dc3a010c7d01b50e0d17dc79c8'] as const

/** A real node with a token on it. */
export type Anvil = {
  readonly rpcUrl: string
  readonly wsUrl: string
  readonly port: number
  readonly token: Hex
  /** Sends a transaction, which the node seals into a block of its own. Returns its hash. */
  send(call: TokenCall): Promise<Hex>
  rpc(method: string, ...params: unknown[]): Promise<unknown>
  /** A sealed block, as the node returns it. */
  block(number: number): Promise<{ readonly hash: string }>
  /** Kills the node. Its sealed blocks are lost unless they were dumped. */
  kill(): Promise<void>
}

const NONCE_TRIES = 10
const Receipt = z.object({ transactionHash: z.string(), contractAddress: z.string().nullish() })
const Answer = z.object({ result: z.unknown().optional(), error: z.object({ message: z.string() }).optional() })

/** Starts a node with the token on a free loopback port. The same port gives the same chain up to the token. */
export async function startAnvil({ port = 0 }: { port?: number } = {}): Promise<Anvil> {
  const child = spawn(anvilBinaryPath(), ['--port', String(port), '--host', '127.0.0.1', '--chain-id', '31337'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const closed = once(child, 'close')
    child.kill('SIGKILL')
    await closed
  }
  try {
    return await deployToken(await waitForPort(child), kill)
  } catch (failure) {
    await kill()
    throw failure
  }
}

async function deployToken(port: number, kill: () => Promise<void>): Promise<Anvil> {
  const rpcUrl = `http://127.0.0.1:${port}`
  const rpc = async (method: string, ...params: unknown[]): Promise<unknown> => {
    const response = await fetch(rpcUrl, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
    const { result, error } = Answer.parse(await response.json())
    if (error) throw new Error(`${method}: ${error.message}`)
    return result
  }
  const [from] = ACCOUNTS
  const transact = async (transaction: Record<string, unknown>): Promise<z.infer<typeof Receipt>> => {
    for (let tries = 1; ; tries += 1) {
      try {
        return Receipt.parse(await rpc('eth_sendTransactionSync', { from, gas: '0x1e8480', ...transaction }))
      } catch (failure) {
        // Anvil returns a receipt a moment before it counts the transaction.
        if (tries === NONCE_TRIES || !String(failure).includes('nonce too low')) throw failure
      }
    }
  }
  const token = toLowerHex(
    (await transact({ data: compileContract(join(import.meta.dirname, 'Stock.sol')) })).contractAddress ?? '',
  )
  return {
    rpcUrl,
    wsUrl: rpcUrl.replace('http', 'ws'),
    port,
    token,
    async send(call) {
      const { transactionHash } = await transact({ to: token, data: encodeFunctionData({ abi, ...call } as never) })
      return toLowerHex(transactionHash)
    },
    rpc,
    block: async (number) =>
      z.object({ hash: z.string() }).parse(await rpc('eth_getBlockByNumber', `0x${number.toString(16)}`, false)),
    kill,
  }
}

const toLowerHex = (hex: string) => hex.toLowerCase() as Hex

/** A list of tokens, as the Read API returns it. */
export async function serveList(...tokens: readonly Record<string, unknown>[]): Promise<{ url: string; stop(): Promise<void> }> {
  const server = createServer((request, response) => {
    const match = request.url === '/v1/tokenized-stocks'
    response.writeHead(match ? 200 : 404, { 'content-type': 'application/json' })
    response.end(JSON.stringify(match ? { tokens } : { code: 404, message: 'not found', details: [] }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

/** The node's program is in a package of its own for each platform. */
function anvilBinaryPath(): string {
  const platform = `@foundry-rs/anvil-${process.platform}-${process.arch === 'x64' ? 'amd64' : process.arch}`
  const ofAnvil = createRequire(require.resolve('@foundry-rs/anvil/package.json'))
  return join(dirname(ofAnvil.resolve(`${platform}/package.json`)), 'bin', 'anvil')
}

/** The port that the node prints. */
function waitForPort(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    let output = ''
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      output += text
      const match = /Listening on 127\.0\.0\.1:(\d+)/.exec(output)
      if (match) resolve(Number(match[1]))
    })
    child.once('error', reject)
    child.once('exit', () => reject(new Error(`anvil ended: ${output}`)))
  })
}
