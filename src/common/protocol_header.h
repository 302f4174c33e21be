/*
 * protocol_header.h
 *		What begins every message.
 */
#ifndef GEONN_PROTOCOL_HEADER_H
#define GEONN_PROTOCOL_HEADER_H

#include <stdint.h>

#define GEONN_PROTOCOL_MAGIC	0x6E6F6567	/* "geon" */
#ifndef GEONN_PROTOCOL_VERSION
#define GEONN_PROTOCOL_VERSION	23
#endif

/* The beginning of every message.  The layouts of the header, of hello and of error never change. */
struct geonn_header
{
	uint32_t	magic;
	uint16_t	version;		/* GEONN_PROTOCOL_VERSION */
	uint16_t	type;			/* enum geonn_message_type */
};

#endif							/* GEONN_PROTOCOL_HEADER_H */
