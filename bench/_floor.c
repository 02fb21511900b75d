/* The least a server can take: answers from a table, found by API and version, with the asker's number put in.
 *
 * cc -O2 -o floor bench/_floor.c && ./floor PORT TABLE; bench/_floor.py writes the table. No check of anything:
 * the only client is a benchmark on the same machine.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { APIS = 64, VERSIONS = 32, CONNECTIONS = 64, ROOM = 65536 };

struct answer { unsigned char *bytes; int length; };
static struct answer answers[APIS][VERSIONS];
static unsigned char room[CONNECTIONS][ROOM];
static int held[CONNECTIONS];

static int number(const unsigned char *at, int bytes) {
    int value = 0;
    while (bytes--) value = value << 8 | *at++;
    return value;
}

static void read_table(const char *path) {
    unsigned char head[8];
    FILE *file = fopen(path, "rb");
    if (!file) exit(1);
    while (fread(head, 1, 8, file) == 8) {
        struct answer *answer = &answers[number(head, 2)][number(head + 2, 2)];
        answer->length = number(head + 4, 4);
        answer->bytes = malloc(answer->length);
        if (fread(answer->bytes, 1, answer->length, file) != (size_t)answer->length) exit(1);
    }
    fclose(file);
}

static void serve(int connection) {
    unsigned char *bytes = room[connection];
    int count = read(connection, bytes + held[connection], ROOM - held[connection]);
    if (count <= 0) {
        close(connection);
        return;
    }
    held[connection] += count;
    while (held[connection] >= 4) {
        int size = 4 + number(bytes, 4);
        if (held[connection] < size) return;
        struct answer *answer = &answers[number(bytes + 4, 2)][number(bytes + 6, 2)];
        if (answer->bytes) {
            memcpy(answer->bytes + 4, bytes + 8, 4);
            if (write(connection, answer->bytes, answer->length) < 0) exit(1);
        }
        held[connection] -= size;
        memmove(bytes, bytes + size, held[connection]);
    }
}

int main(int count, char **words) {
    if (count != 3) return 2;
    read_table(words[2]);
    int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0), poll = epoll_create1(0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(words[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 16)) return 1;
    struct epoll_event wanted = {.events = EPOLLIN, .data.fd = listener}, ready[16];
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &wanted);
    for (;;) {
        int many = epoll_wait(poll, ready, 16, -1);
        for (int n = 0; n < many; n++) {
            if (ready[n].data.fd != listener) {
                serve(ready[n].data.fd);
                continue;
            }
            int connection = accept(listener, 0, 0);
            if (connection >= CONNECTIONS) exit(1);
            held[connection] = 0;
            setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            wanted.data.fd = connection;
            epoll_ctl(poll, EPOLL_CTL_ADD, connection, &wanted);
        }
    }
}
