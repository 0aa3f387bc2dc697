/* Which BLAS a process really uses, asked of the library itself at run time.
 *
 * Nothing here is linked: every function is looked up in what the process has loaded, so that the
 * same source serves a program with OpenBLAS, BLIS, MKL or no BLAS at all. Define _GNU_SOURCE
 * before any system header (dladdr).
 */
#ifndef CLUSTERGATE_BLAS_H
#define CLUSTERGATE_BLAS_H

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

struct blas {
    const char *name;    /* "OpenBLAS", "BLIS", "MKL"; NULL when none of them is loaded */
    const char *library; /* the file that answers to DGEMM, as the loader names it; NULL: none */
    const char *version;
    const char *kernel;  /* the processor whose kernels were chosen */
    int threads;         /* -1: unknown */
};

/* dlsym returns an object pointer; POSIX asks that it converts to a function pointer, ISO C does
   not, hence the copy. */
#define BLAS_FIND(function, symbol)                                                                \
    do {                                                                                           \
        void *found_ = dlsym(RTLD_DEFAULT, symbol);                                                \
        memcpy(&(function), &found_, sizeof found_);                                               \
    } while (0)

static inline const char *blas_file_of(void *address)
{
    Dl_info info;
    return address != NULL && dladdr(address, &info) != 0 ? info.dli_fname : NULL;
}

static inline int blas_find_openblas(struct blas *blas)
{
    /* OpenBLAS can be built with a prefix (the wheels of the Python world) and with a suffix
       (64-bit integers), so that two builds can live in one process. */
    static const char *const names[][3] = {
        {"openblas_get_corename", "openblas_get_config", "openblas_get_num_threads"},
        {"scipy_openblas_get_corename", "scipy_openblas_get_config",
         "scipy_openblas_get_num_threads"},
        {"openblas_get_corename64_", "openblas_get_config64_", "openblas_get_num_threads64_"},
        {"scipy_openblas_get_corename64_", "scipy_openblas_get_config64_",
         "scipy_openblas_get_num_threads64_"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *(*corename)(void), *(*config)(void);
        int (*threads)(void);
        BLAS_FIND(corename, names[i][0]);
        BLAS_FIND(config, names[i][1]);
        BLAS_FIND(threads, names[i][2]);
        if (corename == NULL && config == NULL)
            continue;
        blas->name = "OpenBLAS";
        blas->kernel = corename != NULL ? corename() : NULL;
        blas->version = config != NULL ? config() : NULL;
        blas->threads = threads != NULL ? threads() : -1;
        return 1;
    }
    return 0;
}

static inline int blas_find_blis(struct blas *blas)
{
    const char *(*version)(void), *(*arch_string)(int);
    int (*arch_id)(void);
    long (*threads)(void); /* BLIS's dim_t is as wide as a pointer on 64-bit machines */
    BLAS_FIND(version, "bli_info_get_version_str");
    if (version == NULL)
        return 0;
    BLAS_FIND(arch_string, "bli_arch_string");
    BLAS_FIND(arch_id, "bli_arch_query_id");
    BLAS_FIND(threads, "bli_thread_get_num_threads");
    blas->name = "BLIS";
    blas->version = version();
    blas->kernel = arch_id != NULL && arch_string != NULL ? arch_string(arch_id()) : NULL;
    blas->threads = threads != NULL ? (int)threads() : -1;
    return 1;
}

static inline int blas_find_mkl(struct blas *blas)
{
    static char version_text[256];
    static struct {
        int major, minor, update;
        char *status, *build, *processor, *platform;
    } version; /* MKLVersion of mkl_types.h */
    void (*version_string)(char *, int), (*get_version)(void *);
    int (*threads)(void);
    BLAS_FIND(version_string, "mkl_get_version_string");
    if (version_string == NULL)
        return 0;
    BLAS_FIND(get_version, "mkl_get_version");
    BLAS_FIND(threads, "mkl_get_max_threads");
    version_string(version_text, sizeof version_text - 1);
    if (get_version != NULL)
        get_version(&version);
    blas->name = "MKL";
    blas->version = version_text;
    blas->kernel = version.processor;
    blas->threads = threads != NULL ? threads() : -1;
    return 1;
}

/* The strings belong to the BLAS library: valid as long as it is loaded. */
static inline struct blas blas_identity(void)
{
    static const char *const dgemm[] = {"cblas_dgemm",       "scipy_cblas_dgemm",
                                        "cblas_dgemm64_",    "scipy_cblas_dgemm64_",
                                        "dgemm_",            "scipy_dgemm_"};
    struct blas blas = {NULL, NULL, NULL, NULL, -1};
    for (size_t i = 0; i < sizeof dgemm / sizeof dgemm[0] && blas.library == NULL; i++)
        blas.library = blas_file_of(dlsym(RTLD_DEFAULT, dgemm[i]));
    if (!blas_find_openblas(&blas) && !blas_find_blis(&blas))
        (void)blas_find_mkl(&blas);
    return blas;
}

#endif
