// All bounds on hostile input, in one place.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::limits {

// Formats.
inline constexpr std::uint64_t kSafetensorsHeaderMax = 100'000'000;  // as the reference implementation
inline constexpr std::uint64_t kTensorsPerFileMax = 4'000'000;
inline constexpr std::size_t kTensorNameMax = 4096;
inline constexpr std::uint64_t kTensorNamesMax = 64U << 20U;
inline constexpr std::size_t kDimensionsMax = 32;  // the bound of numpy 1, for views; numpy 2 has 64, safetensors none
inline constexpr std::size_t kGgufDimensionsMax = 4;
inline constexpr std::uint64_t kGgufHeaderMax = 256U << 20U;  // metadata and tensor infos together
inline constexpr std::uint64_t kGgufKeysMax = 65'536;
inline constexpr std::size_t kGgufKeyMax = 65'535;  // as the GGUF specification
inline constexpr std::size_t kGgufArrayDepthMax = 4;
inline constexpr std::uint64_t kNpyHeaderMax = 1U << 20U;
inline constexpr std::size_t kNpyLiteralDepthMax = 16;
inline constexpr std::size_t kProtobufDepthMax = 100;
inline constexpr std::uint64_t kProtobufFieldsMax = 16'000'000;
inline constexpr std::uint64_t kTableBlockMax = 64U << 20U;  // bytes of a block of a table of LevelDB
inline constexpr std::uint64_t kTableKeysMax = 128U << 20U;  // bytes of all its keys together
inline constexpr std::size_t kTfSlicesMax = 1U << 20U;       // of all partitioned tensors of a checkpoint together
inline constexpr std::uint64_t kFlatTablesMax = 131'072;     // reads of tables of a FlatBuffer
inline constexpr std::uint64_t kMsgpackValuesMax = 16'000'000;
inline constexpr std::size_t kMsgpackDepthMax = 64;
inline constexpr std::size_t kJsonDepthMax = 128;
inline constexpr std::uint64_t kIndexJsonMax = 100'000'000;
inline constexpr std::size_t kMetadataTextMax = 1U << 16U;  // one metadata value; longer values are dropped
inline constexpr std::size_t kMetadataEntriesMax = 1024;
inline constexpr std::size_t kHiddenTensorsMax = 1024;  // of a file, that are listed
inline constexpr std::size_t kHiddenReasonMax = 512;    // bytes of the reason of one
inline constexpr std::uint64_t kCutMin = 4096;          // bytes; a shorter cut costs more than its content can save
inline constexpr std::uint64_t kZipMembersMax = 262'144;
inline constexpr std::uint64_t kZipDirectoryMax = 32U << 20U;  // bytes, with all names
inline constexpr std::uint64_t kHdf5NodesMax = 4'000'000;      // object headers, nodes of trees and blocks of heaps
inline constexpr std::uint64_t kHdf5NodeBytes = 8;             // least bytes of a file for each header, node or block
inline constexpr std::uint64_t kHdf5BlockMax = 64U << 20U;     // bytes of one of them
inline constexpr std::uint64_t kHdf5BlocksMax = 512U << 20U;   // bytes of all of them together
inline constexpr std::uint64_t kHdf5HeaderMax = 64U << 20U;    // bytes of an object header with its continuations
inline constexpr std::size_t kHdf5MessagesMax = 1U << 20U;     // of an object header
inline constexpr std::size_t kHdf5DepthMax = 64;               // of groups, and of trees
inline constexpr std::uint64_t kHdf5NamesMax = 256U << 20U;    // bytes of all names and paths together
inline constexpr std::uint64_t kHdf5ChunksMax = 1U << 20U;     // of a dataset
inline constexpr std::uint64_t kHdf5ChunksAllMax = 4'000'000;  // of all tensors of a file together
inline constexpr std::uint64_t kPickleMax = 256U << 20U;
inline constexpr std::uint64_t kPickleOpcodesMax = 32'000'000;
inline constexpr std::size_t kPickleValuesMax = 8'000'000;
inline constexpr std::size_t kPickleItemsMax = 16'000'000;  // of all lists, tuples and dicts together
inline constexpr std::size_t kPickleChunksMax = 4'000'000;  // runs of items that follow one another in memory
inline constexpr std::size_t kPickleCallsMax = 2'000'000;
inline constexpr std::size_t kPickleGlobalsMax = 4096;
inline constexpr std::size_t kPickleLineMax = 4096;            // bytes of a number, a name or a text in a line
inline constexpr std::size_t kPickleDepthMax = 256;            // of the values that are searched for tensors
inline constexpr std::uint64_t kPickleStepsPerOpcode = 16;     // of the search; values that are shared often take many
inline constexpr std::uint64_t kPickleStepsMax = 32'000'000;   // of one search
inline constexpr std::uint64_t kExpandedBytesMax = 1U << 30U;  // of a tensor whose storage has fewer bytes
inline constexpr std::uint64_t kTarExtraMax = 1U << 20U;       // a long name, or the pax records of a member
inline constexpr std::size_t kRecordNameMax = 4096;            // a member's path, or a key with its database's name
inline constexpr std::uint64_t kRecordsPerContainerMax = 1ULL << 28U;
inline constexpr std::size_t kLmdbDepthMax = 32;
inline constexpr std::uint64_t kLmdbPagesMax = 1ULL << 30U;    // one bit of memory per page
inline constexpr std::uint64_t kFrontMatterMax = 1U << 16U;    // of a model card, with both lines of dashes
inline constexpr std::uint64_t kAdapterConfigMax = 1U << 20U;  // larger files are not read
inline constexpr std::size_t kBaseNameMax = 256;               // bytes of a base model's name

// Names.
inline constexpr std::size_t kNameMax = 255;  // NAME_MAX of Linux
inline constexpr std::size_t kModelComponentMax = 96;
inline constexpr std::size_t kModelNameMax = 200;
inline constexpr std::size_t kPathMax = 4000;
inline constexpr std::size_t kPathComponentsMax = 64;

// A version.
inline constexpr std::size_t kFilesPerVersionMax = 1'000'000;
inline constexpr std::uint64_t kManifestMax = 1ULL << 30U;
inline constexpr std::uint64_t kFileTableMax = 1ULL << 30U;     // table of a data set's small files
inline constexpr std::uint64_t kPackedManifestMax = 1U << 20U;  // one chunk; a larger manifest stays a file
inline constexpr std::uint64_t kVersionBytesMax = 1ULL << 62U;  // all files together: offsets and sums fit off_t
inline constexpr std::size_t kFormatNameMax = 32;
inline constexpr std::uint64_t kTreeEntriesPerTensor = 64;  // generated nodes and references; models need about 12
inline constexpr std::uint64_t kTreeEntriesSpare = 65'536;  // extra entries that every version may have
inline constexpr std::uint64_t kDraftFactsMax = 1U << 20U;  // .weft.json of a draft
inline constexpr std::uint64_t kImportOptionsMax = 16 * kDraftFactsMax;  // as JSON, of the import of a draft
inline constexpr std::size_t kDraftEntriesMax = 1U << 28U;      // files and directories of drafts that one walk visits
inline constexpr std::uint64_t kDraftReserveMax = 256U << 20U;  // disk space that drafts leave free: the lesser of this
inline constexpr std::uint64_t kDraftReservePart = 100;         // and a hundredth of the disk
inline constexpr std::uint64_t kCacheReservePart = 20;          // caches leave a twentieth of the disk free
inline constexpr std::uint64_t kTrainerStateMax = 64U << 20U;   // trainer_state.json of a checkpoint
inline constexpr std::size_t kTrainerValuesMax = 4U << 20U;     // JSON values in it
inline constexpr std::size_t kMessageMax = 16U << 10U;
inline constexpr std::size_t kMetricsMax = 256;
inline constexpr std::size_t kMetricTextMax = 256;
inline constexpr std::uint64_t kTimeNsMax = (1ULL << 63U) - 1;  // since 1970: the year 2262, as in times of files
inline constexpr std::size_t kParentsMax = 64;
inline constexpr std::size_t kAuthorTextMax = 256;             // bytes of the name of a user or a node
inline constexpr std::size_t kSourceTextMax = 1024;            // bytes of a text, or of a URL, of a version's source
inline constexpr std::size_t kSourceUrlsMax = 32;              // URLs that a version's source lists
inline constexpr std::uint64_t kVersionNumberMax = 1U << 24U;  // versions of one model; each keeps its row for ever

inline constexpr std::uint64_t kSkippedNumbersMax = 1U << 20U;  // before the number of a version of another store

// Counters of a store, bounded by the bits that a mount's inode numbers have for them (vfs/numbers.h). A publish beyond
// is refused.
inline constexpr std::uint64_t kStoredInoMax = (1ULL << 57U) - 1;
inline constexpr std::uint64_t kBlobNumberMax = (1ULL << 57U) - 1;
inline constexpr std::uint64_t kIdMax = (1ULL << 32U) - 1;  // ids of versions, and of models

// The search for a parent among the versions that hold the same blobs: how many of the largest tensors count, how many
// holders of each from either end, and how many versions are compared as a whole.
inline constexpr std::size_t kKinTensorsMax = 4096;
inline constexpr std::size_t kKinHoldersMax = 128;
inline constexpr std::size_t kKinComparedMax = 16;
// Kin of a version: how many are counted, and how many are drawn as a graph.
inline constexpr std::size_t kKinCountedMax = 10'000;
inline constexpr std::size_t kKinDrawnMax = 40;

// Architectures. A version beyond these bounds gets no architecture; it is not refused.
inline constexpr std::uint64_t kConfigMax = 1U << 20U;     // bytes of a config.json
inline constexpr std::size_t kConfigEntriesMax = 4096;     // facts of a config
inline constexpr std::size_t kConfigTextMax = 256;         // bytes of a key or value
inline constexpr std::size_t kArchLayersMax = 131'072;     // layers of a version
inline constexpr std::uint64_t kArchEdgesMax = 1U << 20U;  // inputs of all layers together
inline constexpr std::size_t kArchTextMax = 64;            // bytes of a kind
inline constexpr std::size_t kArchFamilyMax = 256;
inline constexpr unsigned kArchTensorUsesMax = 8;      // layers that are tied to one tensor
inline constexpr std::size_t kArchParamsMax = 64;      // parameters of one layer
inline constexpr std::uint64_t kMatchStepsMax = 4096;  // search steps of a match, before it compares all classes
inline constexpr std::size_t kInfoVerticesMax = 2048;  // vertices of a graph that info.json lists
inline constexpr std::uint64_t kGraphJsonMax = 256U << 20U;

// Queries.
inline constexpr std::size_t kFindQueryMax = 64U << 10U;
inline constexpr std::size_t kFindDepthMax = 64;

// Advice on saving.
inline constexpr std::size_t kLossPointsMax = 1'000'000;              // points of a training run
inline constexpr std::size_t kLossesFittedMax = 16'384;               // more points are averaged to so many
inline constexpr std::size_t kLossLineMax = 64U << 10U;               // bytes of a line of a CSV file
inline constexpr double kLossMax = 1e15;                              // absolute value
inline constexpr std::uint64_t kTrainingStepMax = 1ULL << 53U;        // integers up to here are exact doubles
inline constexpr double kTrainingSecondsMax = 1e11;                   // a point in time, or a duration
inline constexpr double kTrainingSecondsMin = 1e-12;                  // duration of an iteration or a request
inline constexpr std::uint64_t kIterationsAdvisedMax = 10'000'000;    // future iterations
inline constexpr std::uint64_t kRequestsMax = 1'000'000'000'000'000;  // future requests

// Records of the store.
inline constexpr std::uint64_t kRecordMax = 1ULL << 30U;

// A long change, such as gc or a removal of many versions, is made in batches, each with a writer lock of its own: so
// many versions, packs or files, and about so many rows.
inline constexpr std::size_t kBatchItems = 256;
inline constexpr std::size_t kBatchRows = 4096;

// An origin.
inline constexpr std::uint64_t kOriginIdentityMax = 64U << 10U;  // bytes of weft-origin
inline constexpr std::uint64_t kCatalogEventMax = 4U << 20U;     // bytes of one record of its journal
inline constexpr std::uint64_t kFreedNamesMax = 1U << 20U;       // names of one manifest that collections have freed

// A bundle.
inline constexpr std::uint64_t kBundleListMax = kRecordMax;    // bytes of its list
inline constexpr std::size_t kBundleVersionsMax = 400'000;     // and as many tags
inline constexpr std::uint64_t kBundleBytesMax = 1ULL << 62U;  // bytes of all blobs
inline constexpr std::uint64_t kBundlePaxMax = 64U << 10U;     // bytes of the pax records of one file of a tar

// A mount.
inline constexpr std::size_t kOpenHandlesMax = 1U << 22U;
inline constexpr std::size_t kFileMapsMax = 16'384;  // of the 65,530 mappings that Linux allows a process
inline constexpr std::size_t kReadPartsMax = 64;     // parts of one reply from mapped memory

// The machine.
inline constexpr std::uint64_t kUserListMax = 64U << 20U;  // bytes of /etc/passwd, and of /etc/group

// Between daemons.
inline constexpr std::size_t kNodeIdMax = 64;
inline constexpr std::size_t kEndpointAddressMax = 256;  // bytes of a transport's address
inline constexpr std::uint64_t kKeyFileMax = 4096;
inline constexpr std::size_t kPeerSessionsMax = 1024;     // opened by peers; the least recently used is closed first
inline constexpr std::size_t kPeerHalfOpenMax = 64;       // handshakes of strangers, for a second each
inline constexpr std::size_t kPeerHellosMax = 64;         // hellos that wait for an answer
inline constexpr std::size_t kPeerNewcomersMax = 256;     // unconfirmed addresses, from hellos with the cluster's key
inline constexpr std::size_t kPeerStrangersMax = 8;       // the same, from hellos without the cluster's key
inline constexpr std::size_t kPeerConnectionsMax = 1024;  // made by peers; the longest silent is closed first
inline constexpr std::size_t kPeerConnectionsHalfOpenMax = 64;  // in setup; as many more wait for their turn
inline constexpr std::size_t kReceiveBuffersMax = 8192;         // message buffers
inline constexpr std::size_t kSendBuffersMax = 128;
inline constexpr std::size_t kPeerCallsMax = 256;       // calls of peers, waiting or running
inline constexpr std::size_t kPeerCallsEachMax = 64;    // calls of one peer
inline constexpr std::size_t kPeerPendingMax = 16'384;  // calls of peers whose replies the server gives later
inline constexpr std::size_t kPeerPendingEachMax = 64;  // such calls of one peer
inline constexpr std::size_t kBegunCallsMax = 4096;     // calls to peers that no thread waits for
inline constexpr std::size_t kBegunCallsEachMax = 128;  // begun calls to one peer
inline constexpr std::size_t kWindowsMax = 4096;        // open windows
inline constexpr std::uint64_t kWindowBytesMax = 4ULL << 30U;
inline constexpr std::uint64_t kPinnedAtRestMax = 64U << 20U;   // bytes that stay registered for the next read
inline constexpr std::uint64_t kLockedMemoryMin = 128U << 20U;  // RLIMIT_MEMLOCK that RDMA hardware needs
inline constexpr std::size_t kLandingBuffersMax = 16;           // buffers in use
inline constexpr std::size_t kLandingBuffersAsideMax = 32;      // buffers that abandoned reads may still write
inline constexpr std::uint64_t kWindowCopiesMax = 192U << 20U;  // bytes of copies, in windows without a file
inline constexpr std::size_t kWithdrawnMax = 4096;              // unclosed windows whose addresses stay reserved
inline constexpr std::size_t kBasesPerRequestMax = 70;
inline constexpr std::size_t kCodedCacheMax = 256U << 20U;  // bytes of coded chunks that a node keeps
inline constexpr std::size_t kCodersKeptMax = 8;            // 8 MiB each, with their buffers
inline constexpr std::size_t kHealthManifestsMax = 64;      // versions that one question about health names
inline constexpr std::size_t kHoldersMax = 64;              // holders of one manifest in a directory

// The control socket of a daemon. A connection that sends more is closed. Of connections, running handlers and received
// descriptors, one user holds at most Each. All users but root and the daemon's own hold at most Others together; the
// rest is for those two.
inline constexpr std::size_t kControlMessageMax = 1U << 20U;  // bytes of JSON
inline constexpr std::size_t kControlDepthMax = 32;
inline constexpr std::size_t kControlValuesMax = 65'536;  // values in one message
inline constexpr std::size_t kControlConnectionsMax = 1024;
inline constexpr std::size_t kControlConnectionsOthersMax = 896;
inline constexpr std::size_t kControlConnectionsEachMax = 128;
inline constexpr std::size_t kControlCallsMax = 1024;   // in flight on one connection
inline constexpr std::size_t kControlRunningMax = 256;  // with a thread each, over all connections
inline constexpr std::size_t kControlRunningOthersMax = 192;
inline constexpr std::size_t kControlRunningEachMax = 96;
inline constexpr std::size_t kControlFdsMax = 1024;  // received descriptors that are still open
inline constexpr std::size_t kControlFdsOthersMax = 768;
inline constexpr std::size_t kControlFdsEachMax = 256;
inline constexpr std::uint64_t kControlMessageSecondsMax = 10;  // from the first byte of a message to its last
inline constexpr std::size_t kControlAcceptsAtOnceMax = 64;     // per turn; then other connections have theirs
inline constexpr std::size_t kControlUnreadMax = 4;             // unread messages of a call
inline constexpr std::size_t kMountsMax = 256;                  // that report to a daemon
inline constexpr std::size_t kMountsOfUserMax = 64;             // of one user
inline constexpr std::size_t kMountKindsMax = 16;               // kinds of requests in a report
inline constexpr std::size_t kMountKindMax = 16;                // bytes
inline constexpr std::size_t kMountIdMax = 64;                  // bytes
inline constexpr std::size_t kMountDirectoryMax = 4096;         // bytes
inline constexpr std::size_t kControlQueueMax = 16U << 20U;     // bytes queued for the other end

// The HTTP server of weftd. libmicrohttpd keeps the request line and the header fields of a client in kHttpMemory, and
// so the header fields of its answer. A client that needs more gets 414 or 431.
inline constexpr std::size_t kMetricsClientsMax = 64;
inline constexpr std::size_t kHttpMemory = 64U << 10U;                 // bytes of each connection
inline constexpr std::size_t kHttpPathMax = 16U << 10U;                // bytes, as sent
inline constexpr std::size_t kHttpSegmentsMax = 1024;                  // of one path
inline constexpr std::size_t kHttpArgumentsMax = 100'000;              // of one query or form
inline constexpr std::size_t kHttpContentBytes = 256U << 10U;          // of a content, read and sent at once
inline constexpr std::uint64_t kHttpBytesPerSecondMin = 16ULL << 10U;  // the slowest reader of an answer

// Answers of etcd. etcd puts at most 4 MiB into one message, and base64 and JSON less than double that.
inline constexpr std::size_t kEtcdAnswerMax = 16U << 20U;  // bytes of an answer, or of one line in a stream
inline constexpr std::size_t kEtcdValuesMax = 1'000'000;   // JSON values in one answer
inline constexpr std::size_t kEtcdErrorValuesMax = 256;    // JSON values in an error
inline constexpr std::size_t kEtcdDepthMax = 16;
inline constexpr std::size_t kEtcdTokenMax = 4096;
inline constexpr std::size_t kEtcdOpsMax = 128;  // operations of one transaction: etcd's --max-txn-ops
inline constexpr std::size_t kEtcdEndpointsMax = 16;

// Answers to HTTP requests of this program.
inline constexpr std::size_t kHttpHeadMax = 64U << 10U;  // bytes of the heads of one answer
inline constexpr std::size_t kHttpFieldsMax = 256;
inline constexpr std::size_t kHttpUrlMax = 8U << 10U;  // bytes; signed URLs have about 2 KiB
inline constexpr unsigned kHttpRedirectsMax = 10;

inline constexpr std::size_t kClaimDigits = 32;  // of the key of a claim in the registry

// A model hub.
inline constexpr std::size_t kHubNameComponentMax = 96;  // as huggingface_hub
inline constexpr std::size_t kHubRevisionMax = 255;      // bytes of a branch, a tag or a commit
inline constexpr std::size_t kHubTokenMax = 4096;
inline constexpr std::size_t kHubInfoMax = 64U << 20U;        // bytes of the JSON of a revision; it names all files
inline constexpr std::size_t kHubPageMax = 16U << 20U;        // bytes of a page of a listing; the hub's has 1000 rows
inline constexpr std::size_t kHubPageValuesMax = 250'000;     // JSON values in a page
inline constexpr std::uint64_t kHubListingMax = 1ULL << 30U;  // bytes of all pages
inline constexpr std::size_t kHubPagesMax = 20'000;           // pages of a listing
inline constexpr std::size_t kHubRowsMax = 2 * kFilesPerVersionMax;  // files and directories
inline constexpr std::size_t kHubDepthMax = 16;                      // of the JSON of a page
inline constexpr std::size_t kHubErrorTextMax = 300;                 // bytes of a message of the hub in one of weft
// The endpoint for clients of a hub. Clients that get more than 50,000 files in the answer about a repository read its
// listing instead.
inline constexpr std::size_t kHubClientsMax = 256;
inline constexpr std::size_t kHubBodyMax = 1U << 20U;  // bytes of a request for named paths
inline constexpr std::size_t kHubRowsPerPage = 1000;   // of a listing
inline constexpr std::size_t kHubSiblingsMax = 50'001;
inline constexpr std::size_t kHubRefsMax = 50'000;  // the newest versions

// The registry.
inline constexpr std::size_t kRegistryRecordMax = 1'000'000;  // etcd takes requests of 1.5 MiB
inline constexpr std::size_t kRegistryPacksMax = 65'536;      // packs of one version
inline constexpr std::size_t kRegistryTagsMax = 100;          // set by one publish
inline constexpr std::size_t kFormerNumbersMax = 64;          // of one version
inline constexpr std::uint64_t kTreeNodesMax = 1ULL << 54U;   // nodes of a data set; a model has fewer than 2^32
inline constexpr std::size_t kRegistryRefusalsMax = 32;       // refusals that the status lists

// Tokens and answers by which a machine joins a cluster.
inline constexpr std::size_t kJoinTokenMax = 1024;          // bytes of the text
inline constexpr std::size_t kJoinHostMax = 253;            // bytes of a host's name
inline constexpr std::size_t kJoinRequestMax = 16U << 10U;  // bytes of a request
inline constexpr std::size_t kJoinAnswerMax = 1U << 20U;    // bytes of an answer, which has certificates of a site
inline constexpr std::size_t kJoinClientsMax = 16;
inline constexpr std::size_t kJoinNameMax = 64;          // bytes of a node's name, as X.509 bounds a common name
inline constexpr std::uint64_t kJoinClockMax = 300;      // seconds that the clocks of two nodes may differ at a join
inline constexpr std::size_t kSetupFileMax = 1U << 20U;  // bytes of a file that a setup reads

}  // namespace weft::limits
