/*
 * Where processes of one machine and user get a shard by name. A name is one
 * of a unix socket that no file system knows, and is gone with the process that
 * had it. Every process that has the shard serves it as well as long as
 * there are places, so that the name lives as long as any of them.
 */
#ifndef PEN_DDICT_NAME_SERVER_H
#define PEN_DDICT_NAME_SERVER_H

#include "base/err.h"

#define PEN_NAME_SERVERS 16
#define PEN_NAME_LONGEST 64 /* longest name */

struct pen_name_server;
/* A socket bound to place `at` of the name. PEN_AGAIN: it is taken. */
int pen__name_bind(const char *name, int at, int *sock, struct pen_err *err);
/* Hands out fd, which stays the caller's, at the socket, which does not. */
int pen__name_serve(struct pen_name_server **out, int sock, int fd,
		    struct pen_err *err);
void pen__name_server_close(struct pen_name_server *); /* NULL ok */
/* From whoever has it at any place. PEN_ENOTFOUND: nobody. */
int pen__name_fetch(const char *name, int *fd, struct pen_err *err);
/* Letters, digits, dots, dashes. */
int pen__name_check(const char *name, struct pen_err *err);

#endif
