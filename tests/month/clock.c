/* A clock of the host that is ahead: loaded into a daemon, it adds CLOCK_AHEAD seconds to what the calendar's clock says.
   The clocks that measure how long something takes are left alone. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
  static long long ahead;
  static int known;
  int result = (int)syscall(SYS_clock_gettime, clock, time);
  if (!known) {
    const char *text = getenv("CLOCK_AHEAD");
    ahead = text ? atoll(text) : 0;
    known = 1;
  }
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) time->tv_sec += ahead;
  return result;
}
