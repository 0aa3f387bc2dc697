/* How far the ranks of a node have come: the proof library's other half, progress.c. */
#ifndef CLUSTERGATE_PROGRESS_H
#define CLUSTERGATE_PROGRESS_H

/* Begin to note the calls of this process, before MPI_Init, and to tell of its node in a folder. */
void progress_begin(const char *directory, const char *hostname);

/* What MPI_Init told. */
void progress_of_rank(int rank, int size);

/* Around the calls that proof.c stands before. */
void progress_enter_init(void);
void progress_enter_finalize(void);
void progress_leave(void);

/* Whether this process has a thread more than the program made. */
int progress_threads(void);

#endif
