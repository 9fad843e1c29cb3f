// Finds the lines of all inputs that contain the setting `pattern`, as a WebAssembly module in C: what grep.rs does, for
// machines without that compiler.
//
// Build and push it with (Debian: clang, lld, wasi-libc, libclang-rt-14-dev-wasm32):
//   clang --target=wasm32-wasi -O2 examples/programs/grep.c -o find-lines.wasm
//   ikada program push find-lines.wasm
//   ikada task enqueue --program find-lines --set pattern=error --input log.txt=logs-of-mine/today.txt

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES_MAX 4096
// Exit code by which a program says that trying again cannot mend it.
#define POINTLESS 65

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static const char *variable(const char *name) {
    const char *value = getenv(name);
    if (value == NULL) {
        fprintf(stderr, "%s is not set\n", name);
        exit(1);
    }
    return value;
}

static size_t find(const char *path, const char *name, const char *pattern, FILE *found) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) fail(path);
    char *line = NULL;
    size_t room = 0, number = 0, lines = 0;
    for (ssize_t length; (length = getline(&line, &room, file)) >= 0;) {
        number++;
        if (length > 0 && line[length - 1] == '\n') line[length - 1] = '\0';
        if (strstr(line, pattern) == NULL) continue;
        fprintf(found, "%s:%zu: %s\n", name, number, line);
        lines++;
    }
    if (ferror(file)) fail(path);
    free(line);
    fclose(file);
    return lines;
}

int main(void) {
    const char *pattern = getenv("IKADA_SETTING_PATTERN");
    if (pattern == NULL) {
        fprintf(stderr, "set pattern to what you look for\n");
        return POINTLESS;
    }
    char path[PATH_BYTES_MAX];
    snprintf(path, sizeof path, "%s/lines.txt", variable("IKADA_OUT"));
    FILE *found = fopen(path, "wb");
    if (found == NULL) fail(path);
    const char *inputs = variable("IKADA_IN");
    DIR *folder = opendir(inputs);
    if (folder == NULL) fail(inputs);
    size_t lines = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        snprintf(path, sizeof path, "%s/%s", inputs, entry->d_name);
        lines += find(path, entry->d_name, pattern, found);
    }
    closedir(folder);
    if (fclose(found) != 0) fail("IKADA_OUT");
    FILE *result = fopen(variable("IKADA_RESULT"), "wb");
    if (result == NULL) fail("IKADA_RESULT");
    fprintf(result, "{\"lines\": %zu}", lines);
    return fclose(result) != 0;
}
