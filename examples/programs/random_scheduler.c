/* A minimal scheduler in C: once a second it binds each pending pod to a random free node.
 *
 *     cc -o random_scheduler examples/programs/random_scheduler.c
 *     batkube run … --scheduler preload:./random_scheduler
 *
 * It uses the API of `kubectl proxy` over HTTP, and does not depend on Batkube. A node is free if it has no unfinished
 * pod. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PROXY_PORT = 8001, MOST_NODES = 4096, NAME_SIZE = 256 };

/* HTTP: one connection for each request. */

static char *request(const char *method, const char *path, const char *body) {
    struct sockaddr_in proxy = {.sin_family = AF_INET, .sin_port = htons(PROXY_PORT)};
    proxy.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    if (connection < 0 || connect(connection, (struct sockaddr *)&proxy, sizeof proxy) != 0) {
        perror("connecting to the API");
        exit(1);
    }
    char *text;
    int length = asprintf(&text,
                          "%s %s HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\nConnection: close\r\n"
                          "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                          method, path, strlen(body), body);
    for (int done = 0; done < length;) {
        ssize_t count = write(connection, text + done, (size_t)(length - done));
        if (count <= 0) exit(1);
        done += (int)count;
    }
    free(text);
    char *answer = NULL;
    size_t size = 0, room = 0;
    for (;;) {
        if (room - size < 65536) answer = realloc(answer, room += room + 65536);
        ssize_t count = read(connection, answer + size, room - size - 1);
        if (count <= 0) break;
        size += (size_t)count;
    }
    close(connection);
    answer[size] = '\0';
    return answer;
}

/* JSON: a value is a pointer into the text; NULL if it does not exist. */

static const char *after_space(const char *text) { return text + strspn(text, " \t\r\n,:"); }

static const char *after_string(const char *text) {
    for (text++; *text && *text != '"'; text++) {
        if (*text == '\\') text++;
    }
    return text + 1;
}

static const char *after_value(const char *text) {
    text = after_space(text);
    if (*text == '"') return after_string(text);
    if (*text != '{' && *text != '[') return text + strcspn(text, ",]} \t\r\n");
    for (text = after_space(text + 1); *text && *text != '}' && *text != ']'; text = after_space(text)) {
        text = after_value(text);
    }
    return text + 1;
}

static const char *member(const char *object, const char *name) {
    if (!object || *object != '{') return NULL;
    size_t length = strlen(name);
    for (const char *key = after_space(object + 1); *key == '"';) {
        const char *value = after_space(after_string(key));
        if (strncmp(key + 1, name, length) == 0 && key[length + 1] == '"') return value;
        key = after_space(after_value(value));
    }
    return NULL;
}

static const char *first(const char *list) {
    const char *value = list ? after_space(list + 1) : NULL;
    return value && *value == '{' ? value : NULL;
}

static const char *next(const char *value) {
    value = after_space(after_value(value));
    return *value == '{' ? value : NULL;
}

static void copy_text(const char *value, char *to) {
    size_t length = value && *value == '"' ? (size_t)(after_string(value) - value) - 2 : 0;
    if (length >= NAME_SIZE) length = NAME_SIZE - 1;
    if (length) memcpy(to, value + 1, length);
    to[length] = '\0';
}

static const char *items(const char *answer) {
    const char *body = strstr(answer, "\r\n\r\n");
    return body ? first(member(after_space(body + 4), "items")) : NULL;
}

/* Scheduling */

static char nodes[MOST_NODES][NAME_SIZE];
static int node_count;

static void remove_node(const char *name) {
    for (int each = 0; each < node_count; each++) {
        if (strcmp(nodes[each], name) == 0) {
            memmove(nodes[each], nodes[--node_count], NAME_SIZE);
            return;
        }
    }
}

static void find_free_nodes(const char *pods) {
    char *answer = request("GET", "/api/v1/nodes", "");
    node_count = 0;
    for (const char *node = items(answer); node && node_count < MOST_NODES; node = next(node)) {
        copy_text(member(member(node, "metadata"), "name"), nodes[node_count++]);
    }
    free(answer);
    for (const char *pod = items(pods); pod; pod = next(pod)) {
        char phase[NAME_SIZE], node[NAME_SIZE];
        copy_text(member(member(pod, "status"), "phase"), phase);
        copy_text(member(member(pod, "spec"), "nodeName"), node);
        if (strcmp(phase, "Succeeded") != 0 && strcmp(phase, "Failed") != 0) remove_node(node);
    }
}

static int draw(int below) {
    unsigned number;
    if (getrandom(&number, sizeof number, 0) != sizeof number) exit(1);
    return (int)(number % (unsigned)below);
}

static void bind_pod(const char *pod) {
    char name[NAME_SIZE], namespace[NAME_SIZE], *path, *body;
    copy_text(member(member(pod, "metadata"), "name"), name);
    copy_text(member(member(pod, "metadata"), "namespace"), namespace);
    char *node = nodes[draw(node_count)];
    if (asprintf(&path, "/api/v1/namespaces/%s/pods/%s/binding", namespace, name) < 0 ||
        asprintf(&body,
                 "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"%s\"},"
                 "\"target\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"%s\"}}",
                 name, node) < 0) {
        exit(1);
    }
    free(request("POST", path, body));
    time_t now = time(NULL);
    char clock[32];
    strftime(clock, sizeof clock, "%FT%TZ", gmtime(&now));
    printf("%s %s/%s on %s\n", clock, namespace, name, node);
    fflush(stdout);
    remove_node(node);
    free(path);
    free(body);
}

int main(void) {
    for (;;) {
        char *pods = request("GET", "/api/v1/pods", "");
        find_free_nodes(pods);
        for (const char *pod = items(pods); pod && node_count; pod = next(pod)) {
            if (!member(member(pod, "spec"), "nodeName")) bind_pod(pod);
        }
        free(pods);
        sleep(1);
    }
}
