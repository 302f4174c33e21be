/*
 * version.h
 *		The release that the module and the engine belong to.
 *
 * Module and engine are installed together, and talk only if their releases
 * are the same: each sends this string in its first message.
 */
#ifndef GEONN_VERSION_H
#define GEONN_VERSION_H

#ifndef GEONN_VERSION
#define GEONN_VERSION "0.2"
#endif

#endif							/* GEONN_VERSION_H */
