#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
enum { N = 16 << 20 };
int main(void) {
  char *a = malloc(N), *b = malloc(N);
  struct timespec s, e;
  double best = 0;
  memset(a, 1, N); memset(b, 2, N);
  for (int k = 0; k < 5; k++) {
    clock_gettime(CLOCK_MONOTONIC, &s);
    memcpy(b, a, N);
    clock_gettime(CLOCK_MONOTONIC, &e);
    double t = (e.tv_sec - s.tv_sec) + 1e-9 * (e.tv_nsec - s.tv_nsec);
    if (2.0 * N / t / 1e9 > best) best = 2.0 * N / t / 1e9;
  }
  printf("Copy %.3f\nItems %.1f\n%c", best, best * 7, b[5] == 1 ? '\n' : '!');
  return 0;
}
