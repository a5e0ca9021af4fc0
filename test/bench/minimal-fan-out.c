// The least that a fan-out can cost on this machine: every record from one connection is written unchanged to all
// others, with one write each. The first argument is the answer to a GET request.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LISTENERS_BOUND = 65536, RECORD_BOUND = 8 << 20 };
static int listeners[LISTENERS_BOUND], count;
static unsigned char held[RECORD_BOUND];
static size_t used;

static int open_port(int *port) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  if (bind(fd, (void *)&at, size) || listen(fd, 4096) || getsockname(fd, (void *)&at, &size)) exit(1);
  *port = ntohs(at.sin_port);
  return fd;
}

static void write_all(int fd, const unsigned char *bytes, size_t left) {
  while (left) {
    ssize_t taken = write(fd, bytes, left); // the kernel counts it, as it does not count a send
    if (taken > 0) bytes += taken, left -= taken;
    else if (poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, 1000) <= 0) return;
  }
}

static void take(void) {
  size_t at = 0;
  for (uint32_t size; used - at >= 4; at += 4 + size) {
    memcpy(&size, held + at, 4);
    size = ntohl(size);
    if (used - at < 4 + size) break;
    for (int i = 0; i < count; i++) write_all(listeners[i], held + at + 4, size);
  }
  memmove(held, held + at, used -= at);
}

int main(int argc, char **argv) {
  int ports[2], listening[2] = {open_port(&ports[0]), open_port(&ports[1])}, feed = -1, ep = epoll_create1(0);
  struct epoll_event events[256];
  signal(SIGPIPE, SIG_IGN);
  for (int i = 0; i < 2; i++)
    epoll_ctl(ep, EPOLL_CTL_ADD, listening[i], &(struct epoll_event){.events = EPOLLIN, .data.fd = listening[i]});
  printf("listens on %d, is fed on %d\n", ports[0], ports[1]);
  fflush(stdout);
  for (;;) {
    int ready = epoll_wait(ep, events, 256, -1);
    for (int i = 0; i < ready; i++) {
      int fd = events[i].data.fd, accepted;
      char request[4096];
      if (fd == listening[0] || fd == listening[1]) {
        while ((accepted = accept4(fd, 0, 0, SOCK_NONBLOCK)) >= 0) {
          setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
          if (fd == listening[1]) feed = accepted;
          epoll_ctl(ep, EPOLL_CTL_ADD, accepted, &(struct epoll_event){.events = EPOLLIN, .data.fd = accepted});
        }
      } else if (fd == feed) {
        ssize_t size = recv(fd, held + used, RECORD_BOUND - used, 0);
        if (size == 0) return 0;
        if (size > 0) used += size, take();
      } else if (recv(fd, request, sizeof request, 0) <= 0) {
        epoll_ctl(ep, EPOLL_CTL_DEL, fd, 0);
      } else if (!memcmp(request, "GET", 3) && argc > 1 && count < LISTENERS_BOUND) {
        write_all(fd, (unsigned char *)argv[1], strlen(argv[1]));
        listeners[count++] = fd;
      }
    }
  }
}
