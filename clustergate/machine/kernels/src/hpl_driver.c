/* xhpl out of the HPL that comes inside HPCC 1.5.0.
 *
 * HPL itself is on no package registry, HPCC is, and it carries HPL 2.0 with two changes: main()
 * became HPL_main(), and the input is hpccinf.txt, whose lines are those of HPL.dat. This file
 * puts a main() back, so that one checksummed source gives both hpcc and xhpl.
 *
 * As with the xhpl that one knows: the fourth line of the input says where the text goes
 * (6 standard output, 7 standard error, anything else a file, here always hpccoutf.txt), an input
 * that cannot be used ends the program with status 1, and residuals that fail do not, since the
 * text says so. Text for standard output appears when all tests have ended.
 */
#include <hpcc.h>

#define INPUT "hpccinf.txt"
#define OUTPUT "hpccoutf.txt"
#define DEVICE_LINE 4

/* HPL_pdinfo() calls this on every process when the input is missing or wrong, for a default
 * problem. A problem that nobody asked for must not be measured. */
int HPCC_Defaults(HPL_T_test *test, int *ns, int *n, int *nbs, int *nb, HPL_T_ORDER *pmap,
                  int *npqs, int *p, int *q, int *npfs, HPL_T_FACT *pf, int *nbms, int *nbm,
                  int *ndvs, int *ndv, int *nrfs, HPL_T_FACT *rf, int *ntps, HPL_T_TOP *tp,
                  int *ndhs, int *dh, HPL_T_SWAP *fswap, int *tswap, int *l1notran, int *unotran,
                  int *equil, int *align, MPI_Comm comm)
{
    int rank;

    MPI_Comm_rank(comm, &rank);
    if (rank == 0)
        fprintf(stderr, "xhpl: %s is missing or has an illegal value; see the line above\n", INPUT);
    MPI_Finalize();
    exit(EXIT_FAILURE);
}

static int device(void)
{
    char line[256];
    int number = 8, count = 0;
    FILE *input = fopen(INPUT, "r");

    if (input == NULL) return number; /* HPL_pdinfo() will complain */
    while (count < DEVICE_LINE && fgets(line, sizeof line, input)) count++;
    if (count == DEVICE_LINE) number = atoi(line);
    fclose(input);
    return number;
}

/* HPL_pdinfo() writes to the file whatever the device says. */
static int move_text(FILE *to)
{
    char block[65536];
    size_t length;
    int failed;
    FILE *from = fopen(OUTPUT, "r");

    if (from == NULL) return 1;
    while ((length = fread(block, 1, sizeof block, from)) > 0) fwrite(block, 1, length, to);
    failed = ferror(from) | ferror(to) | fflush(to);
    fclose(from);
    if (!failed) remove(OUTPUT);
    return failed;
}

int main(int argc, char *argv[])
{
    HPL_RuntimeData best = {0};
    int rank, residual_failed = 0, status = EXIT_SUCCESS;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    /* HPL_pdinfo() appends: an earlier run's text must not stay in front of this one's. */
    if (rank == 0) remove(OUTPUT);
    HPL_main(argc, argv, &best, &residual_failed);
    if (rank == 0) {
        int where = device();
        if ((where == 6 && move_text(stdout)) || (where == 7 && move_text(stderr))) {
            fprintf(stderr, "xhpl: the text in %s could not be written out\n", OUTPUT);
            status = EXIT_FAILURE;
        }
    }
    MPI_Finalize();
    return status;
}
