import type { CloseReason } from '../../../protocol/close-codes.ts'

/** Takes a listener's bytes: a WebSocket, a streaming response or an export. */
export interface Outlet {
  write(bytes: Buffer): void
  /** Bytes written and not yet taken by the kernel. */
  readonly backlog: number
  /** Bytes that the kernel has taken in total. */
  readonly takenBytes: number
  /** Resolves when there is room again, or when the connection has ended. */
  drained(): Promise<void>
  /** Pings the client if the transport can; true if the client left too many pings unanswered. */
  ping(): boolean
  end(reason: CloseReason, position: string | null): void
  /** Ends the connection at once, without sending unsent bytes. */
  cut(): void
}
