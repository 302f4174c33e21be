/*
 * version.h
 *		The release that the module and the engine belong to.
 *
 * The two are installed together and talk only to their like: each says this
 * string in its first message.
 */
#ifndef GEONN_VERSION_H
#define GEONN_VERSION_H

#ifndef GEONN_VERSION
#define GEONN_VERSION "0.1"
#endif

#endif							/* GEONN_VERSION_H */
