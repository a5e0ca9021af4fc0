import type { Outlet } from '../../../../src/relay/edge/transport/socket-outlet.ts'

/** A connection that takes everything at once. */
export class QuietOutlet implements Outlet {
  get backlog(): number {
    return 0
  }

  get takenBytes(): number {
    return 0
  }

  write(_bytes: Buffer): void {}

  async drained(): Promise<void> {}

  ping(): boolean {
    return false
  }

  end(): void {}

  cut(): void {}
}
