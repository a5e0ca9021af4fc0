import type { CloseReason } from '../../../protocol/close-codes.ts'

/** Where a listener's bytes go: a WebSocket, a streaming response or an export. */
export interface Outlet {
  write(bytes: Buffer): void
  /** Bytes accepted from us and not yet taken by the kernel. */
  readonly backlog: number
  /** Bytes that the kernel has taken so far. */
  readonly takenBytes: number
  /** Resolves when there is room again, or when the connection is gone. */
  drained(): Promise<void>
  /** Pings the client where the transport can; true if the client left too many pings unanswered. */
  ping(): boolean
  end(reason: CloseReason, position: string | null): void
  /** Ends the connection at once, without sending what is left. */
  cut(): void
}
