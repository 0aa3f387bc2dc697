/* McCalpin's STREAM as an MPI program, so that it is launched, bound and proven like all others.
 *
 *   mpicc -fopenmp -Dmain=stream_main -DSTREAM_ARRAY_SIZE=… -o stream5 stream5.c stream.c
 *
 * Each rank runs stream.c as it is, all at once, and rank 0 prints their texts one after the other.
 * Before each stands a line of what the rank had: to which cores each of its OpenMP threads was
 * bound (a core is the first of its CPUs), in which NUMA domains these are, and how much of the
 * process's memory lay in which domain afterwards, in KiB.
 */
#define _GNU_SOURCE
#include <glob.h>
#include <mpi.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#undef main
int stream_main(void);

enum { MAX_CPUS = 16384, MAX_DOMAINS = 1024 };

/* The first CPU of a CPU's core; itself where the kernel does not say. */
static int core_of(int cpu)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    FILE *file = fopen(path, "r");
    int first = cpu;
    if (file != NULL) {
        if (fscanf(file, "%d", &first) != 1)
            first = cpu;
        fclose(file);
    }
    return first;
}

/* The NUMA domain of a CPU, -1 where the kernel does not say. */
static int domain_of(int cpu)
{
    char pattern[96];
    snprintf(pattern, sizeof pattern, "/sys/devices/system/cpu/cpu%d/node[0-9]*", cpu);
    glob_t found;
    int domain = -1;
    if (glob(pattern, 0, NULL, &found) == 0) {
        domain = atoi(strstr(found.gl_pathv[0], "/node") + strlen("/node"));
        globfree(&found);
    }
    return domain < MAX_DOMAINS ? domain : -1;
}

static void put_numbers(FILE *out, const char *is_member, int count)
{
    const char *comma = "";
    putc('[', out);
    for (int i = 0; i < count; i++)
        if (is_member[i]) {
            fprintf(out, "%s%d", comma, i);
            comma = ",";
        }
    putc(']', out);
}

/* Bind each OpenMP thread to a core of its own among those of the rank: the n-th to the n-th. Return
   what the rank had, to be given back before its end. */
static cpu_set_t *bind_threads(size_t size)
{
    cpu_set_t *had = CPU_ALLOC(MAX_CPUS);
    if (had == NULL || sched_getaffinity(0, size, had) != 0)
        return NULL;
    #pragma omp parallel
    {
        cpu_set_t *own = CPU_ALLOC(MAX_CPUS);
        int wanted = omp_get_thread_num(), cores = 0;
        for (int cpu = 0; own != NULL && cpu < MAX_CPUS; cpu++)
            if (CPU_ISSET_S(cpu, size, had)) {
                int first = core_of(cpu);
                /* Of a core whose first CPU is not the rank's, another one counts. */
                int is_new = first == cpu || !CPU_ISSET_S(first, size, had);
                if (is_new && cores++ == wanted) {
                    CPU_ZERO_S(size, own);
                    CPU_SET_S(cpu, size, own);
                    sched_setaffinity(0, size, own);
                    break;
                }
            }
        CPU_FREE(own);
    }
    return had;
}

/* Write to which cores each thread is bound, as the kernel says now. */
static void put_threads(FILE *out, size_t size)
{
    static char domains[MAX_DOMAINS], cores[MAX_CPUS];
    fputs(",\"cores\":[", out);
    #pragma omp parallel
    for (int thread = 0; thread < omp_get_num_threads(); thread++) {
        if (thread == omp_get_thread_num()) {
            cpu_set_t *allowed = CPU_ALLOC(MAX_CPUS);
            memset(cores, 0, sizeof cores);
            if (allowed != NULL && sched_getaffinity(0, size, allowed) == 0)
                for (int cpu = 0; cpu < MAX_CPUS; cpu++)
                    if (CPU_ISSET_S(cpu, size, allowed)) {
                        int domain = domain_of(cpu);
                        cores[core_of(cpu)] = 1;
                        if (domain >= 0)
                            domains[domain] = 1;
                    }
            CPU_FREE(allowed);
            if (thread > 0)
                putc(',', out);
            put_numbers(out, cores, MAX_CPUS);
        }
        #pragma omp barrier
    }
    fputs("],\"domains\":", out);
    put_numbers(out, domains, MAX_DOMAINS);
}

static void put_memory(FILE *out)
{
    static long kib[MAX_DOMAINS];
    FILE *maps = fopen("/proc/self/numa_maps", "r");
    if (maps == NULL)
        return;
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, maps) > 0) {
        const char *page = strstr(line, "kernelpagesize_kB=");
        long each = page != NULL ? atol(page + strlen("kernelpagesize_kB=")) : 4;
        for (char *word = strstr(line, " N"); word != NULL; word = strstr(word + 1, " N")) {
            int domain;
            long pages;
            if (sscanf(word, " N%d=%ld", &domain, &pages) == 2 && domain >= 0 && domain < MAX_DOMAINS)
                kib[domain] += pages * each;
        }
    }
    free(line);
    fclose(maps);
    const char *comma = "";
    fputs(",\"kib\":{", out);
    for (int i = 0; i < MAX_DOMAINS; i++)
        if (kib[i] > 0) {
            fprintf(out, "%s\"%d\":%ld", comma, i, kib[i]);
            comma = ",";
        }
    putc('}', out);
}

static void require(int holds, const char *what)
{
    if (!holds) {
        perror(what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* Run stream.c and return what it printed, below the rank's own line. */
static char *run(int rank, int size)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length), *printed = tmpfile();
    require(out != NULL && printed != NULL, "stream5: a file for the output");
    fflush(stdout);
    int shown = dup(STDOUT_FILENO);
    require(shown >= 0 && dup2(fileno(printed), STDOUT_FILENO) >= 0, "stream5: dup");
    size_t room = CPU_ALLOC_SIZE(MAX_CPUS);
    cpu_set_t *had = bind_threads(room);
    require(had != NULL, "stream5: the CPUs of the rank");
    MPI_Barrier(MPI_COMM_WORLD);
    int status = stream_main();
    fflush(stdout);
    require(dup2(shown, STDOUT_FILENO) >= 0, "stream5: dup2");
    close(shown);
    require(status == 0, "stream5: stream.c");
    fprintf(out, "{\"stream5\":\"rank\",\"rank\":%d,\"processes\":%d", rank, size);
    put_threads(out, room);
    put_memory(out);
    sched_setaffinity(0, room, had);
    CPU_FREE(had);
    fputs("}\n", out);
    rewind(printed);
    for (int c; (c = getc(printed)) != EOF;)
        putc(c, out);
    fclose(printed);
    fclose(out);
    return text;
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char *text = run(rank, size);
    int length = (int)strlen(text);
    if (rank > 0) {
        MPI_Send(text, length, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    } else {
        fputs(text, stdout);
        for (int other = 1; other < size; other++) {
            MPI_Status status;
            MPI_Probe(other, 0, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_CHAR, &length);
            char *theirs = malloc((size_t)length);
            require(theirs != NULL, "stream5: memory for the output");
            MPI_Recv(theirs, length, MPI_CHAR, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            fwrite(theirs, 1, (size_t)length, stdout);
            free(theirs);
        }
        fflush(stdout);
    }
    free(text);
    MPI_Finalize();
    return 0;
}
