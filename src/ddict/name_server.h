/*
 * Finds a shard by name, for processes of one user on one machine. A name is
 * that of an abstract unix socket, which vanishes with its process. Up to
 * PEN_NAME_SERVERS processes that use the shard serve it, so the name lives as
 * long as any of them.
 */
#ifndef PEN_DDICT_NAME_SERVER_H
#define PEN_DDICT_NAME_SERVER_H

#include "base/err.h"

#define PEN_NAME_SERVERS 16
#define PEN_NAME_LONGEST 64 /* longest name */

struct pen_name_server;
/* Binds a socket to place `at` of the name. PEN_AGAIN: the place is taken. */
int pen__name_bind(const char *name, int at, int *sock, struct pen_err *err);
/* Hands out fd over the socket; takes ownership of the socket, not of fd. */
int pen__name_serve(struct pen_name_server **out, int sock, int fd,
		    struct pen_err *err);
void pen__name_server_close(struct pen_name_server *); /* NULL ok */
/* Fetches the descriptor from any server. PEN_ENOTFOUND: there is none. */
int pen__name_fetch(const char *name, int *fd, struct pen_err *err);
/* Checks that a name has only letters, digits, dots, dashes and underscores. */
int pen__name_check(const char *name, struct pen_err *err);

#endif
