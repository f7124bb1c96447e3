// SPDX-License-Identifier: Apache-2.0
// Numbers of the Parquet file format and of the compact protocol of Thrift that its headers are written in: pure data,
// from the format's Thrift description, its page on
// encodings, and Thrift's page on that protocol. Only what is written here.
#ifndef TRACER_PARQUET_PARQUET_FORMAT_H
#define TRACER_PARQUET_PARQUET_FORMAT_H

// A file: magic, column chunks of each row group, FileMetaData, its length (4 bytes, little-endian), magic.
#define PARQUET_MAGIC "PAR1"

enum { // types of fields in the compact protocol
    THRIFT_FALSE = 2,
    THRIFT_I32 = 5,
    THRIFT_I64 = 6,
    THRIFT_BINARY = 8,
    THRIFT_LIST = 9,
    THRIFT_STRUCT = 12,
};

enum { // Type
    PARQUET_TYPE_INT32 = 1,
    PARQUET_TYPE_INT64 = 2,
    PARQUET_TYPE_BYTE_ARRAY = 6,
};

enum { PARQUET_REQUIRED = 0, PARQUET_CONVERTED_UTF8 = 0, PARQUET_CODEC_ZSTD = 6 };

enum { // PageType
    PARQUET_DATA_PAGE = 0,
    PARQUET_DICTIONARY_PAGE = 2,
};

enum { // Encoding
    PARQUET_PLAIN = 0,
    PARQUET_RLE = 3,
    PARQUET_DELTA_BINARY_PACKED = 5,
    PARQUET_RLE_DICTIONARY = 8,
};

enum { // FileMetaData
    FILE_VERSION = 1,
    FILE_SCHEMA = 2,
    FILE_ROWS = 3,
    FILE_ROW_GROUPS = 4,
    FILE_CREATED_BY = 6,
    FILE_COLUMN_ORDERS = 7,
};

enum { // SchemaElement
    SCHEMA_TYPE = 1,
    SCHEMA_REPETITION = 3,
    SCHEMA_NAME = 4,
    SCHEMA_CHILDREN = 5,
    SCHEMA_CONVERTED_TYPE = 6,
    SCHEMA_LOGICAL_TYPE = 10,
    LOGICAL_TYPE_STRING = 1,
    COLUMN_ORDER_OF_TYPE = 1,
};

enum { // RowGroup, ColumnChunk
    GROUP_COLUMNS = 1,
    GROUP_BYTES = 2,
    GROUP_ROWS = 3,
    GROUP_FILE_OFFSET = 5,
    GROUP_PACKED_BYTES = 6,
    CHUNK_FILE_OFFSET = 2,
    CHUNK_META = 3,
};

enum { // ColumnMetaData
    META_TYPE = 1,
    META_ENCODINGS = 2,
    META_PATH = 3,
    META_CODEC = 4,
    META_VALUES = 5,
    META_BYTES = 6,
    META_PACKED_BYTES = 7, // with the headers of pages, as META_BYTES
    META_DATA_OFFSET = 9,
    META_DICTIONARY_OFFSET = 11,
    META_STATISTICS = 12,
};

enum { // Statistics: min and max of fields 1 and 2 mean an old order, and are passed over
    STATISTICS_NULLS = 3,
    STATISTICS_MAX = 5,
    STATISTICS_MIN = 6,
};

enum { // PageHeader, DataPageHeader, DictionaryPageHeader
    PAGE_TYPE = 1,
    PAGE_BYTES = 2,
    PAGE_PACKED_BYTES = 3,
    PAGE_DATA = 5,
    PAGE_DICTIONARY = 7,
    DATA_VALUES = 1,
    DATA_ENCODING = 2,
    DATA_DEFINITION_ENCODING = 3,
    DATA_REPETITION_ENCODING = 4,
    DICTIONARY_VALUES = 1,
    DICTIONARY_ENCODING = 2,
};

enum { // DELTA_BINARY_PACKED
    DELTA_BLOCK_VALUES = 128,
    DELTA_MINIBLOCKS = 4,
    DELTA_MINIBLOCK_VALUES = DELTA_BLOCK_VALUES / DELTA_MINIBLOCKS,
};

#endif
