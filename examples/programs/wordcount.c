// Counts the words of all inputs, as a WebAssembly module in C: what wordcount.rs does, for machines without that compiler.
// A word is a run of ASCII letters and of bytes of other alphabets.
//
// Build and push it with (Debian: clang, lld, wasi-libc, libclang-rt-14-dev-wasm32):
//   clang --target=wasm32-wasi -O2 examples/programs/wordcount.c -o count-words.wasm
//   ikada program push count-words.wasm
//   ikada job run --map count-words --input '*.txt' --reduce merge

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES_MAX 4096

static char **words;
static size_t count, room;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void *grow(void *memory, size_t bytes) {
    void *more = realloc(memory, bytes);
    if (more == NULL) fail("memory");
    return more;
}

static const char *variable(const char *name) {
    const char *value = getenv(name);
    if (value == NULL) {
        fprintf(stderr, "%s is not set\n", name);
        exit(1);
    }
    return value;
}

static void keep(const char *word, size_t length) {
    if (count == room) {
        room = room == 0 ? 1024 : room * 2;
        words = grow(words, room * sizeof *words);
    }
    words[count] = grow(NULL, length + 1);
    memcpy(words[count], word, length);
    words[count++][length] = '\0';
}

static int is_letter(int byte) {
    return (byte >= 'a' && byte <= 'z') || byte >= 0x80;
}

static void read_words(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) fail(path);
    char *word = NULL;
    size_t length = 0, space = 0;
    for (int byte; (byte = getc(file)) != EOF;) {
        if (byte >= 'A' && byte <= 'Z') byte += 'a' - 'A';
        if (!is_letter(byte)) {
            if (length > 0) keep(word, length);
            length = 0;
            continue;
        }
        if (length == space) {
            space = space == 0 ? 64 : space * 2;
            word = grow(word, space);
        }
        word[length++] = (char)byte;
    }
    if (length > 0) keep(word, length);
    if (ferror(file)) fail(path);
    free(word);
    fclose(file);
}

static int compare(const void *left, const void *right) {
    return strcmp(*(char *const *)left, *(char *const *)right);
}

int main(void) {
    const char *inputs = variable("IKADA_IN");
    DIR *folder = opendir(inputs);
    if (folder == NULL) fail(inputs);
    char path[PATH_BYTES_MAX];
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        snprintf(path, sizeof path, "%s/%s", inputs, entry->d_name);
        read_words(path);
    }
    closedir(folder);
    qsort(words, count, sizeof *words, compare);

    snprintf(path, sizeof path, "%s/counts.tsv", variable("IKADA_OUT"));
    FILE *table = fopen(path, "wb");
    if (table == NULL) fail(path);
    size_t distinct = 0;
    for (size_t first = 0, next; first < count; first = next, distinct++) {
        for (next = first + 1; next < count && strcmp(words[first], words[next]) == 0;) next++;
        fprintf(table, "%s\t%zu\n", words[first], next - first);
    }
    if (fclose(table) != 0) fail(path);

    FILE *result = fopen(variable("IKADA_RESULT"), "wb");
    if (result == NULL) fail("IKADA_RESULT");
    fprintf(result, "{\"words\": %zu, \"distinct\": %zu}", count, distinct);
    if (fclose(result) != 0) fail("IKADA_RESULT");
    return 0;
}
