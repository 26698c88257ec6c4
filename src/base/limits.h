// Every bound that hostile bytes meet, in one place.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::limits {

// Formats.
inline constexpr std::uint64_t kSafetensorsHeaderMax = 100'000'000;  // as the reference implementation
inline constexpr std::uint64_t kTensorsPerFileMax = 4'000'000;
inline constexpr std::size_t kTensorNameMax = 4096;
inline constexpr std::size_t kDimensionsMax = 32;  // numpy 2 holds 64, safetensors any; views need numpy ≥ 1.x: 32
inline constexpr std::size_t kGgufDimensionsMax = 4;
inline constexpr std::uint64_t kGgufHeaderMax = 256U << 20U;  // metadata and tensor infos together
inline constexpr std::uint64_t kGgufKeysMax = 65'536;
inline constexpr std::size_t kGgufKeyMax = 65'535;  // as the GGUF specification
inline constexpr std::size_t kGgufArrayDepthMax = 4;
inline constexpr std::uint64_t kNpyHeaderMax = 1U << 20U;
inline constexpr std::size_t kNpyLiteralDepthMax = 16;
inline constexpr std::size_t kJsonDepthMax = 128;
inline constexpr std::uint64_t kIndexJsonMax = 100'000'000;
inline constexpr std::size_t kMetadataTextMax = 1U << 16U;  // one kept metadata value; longer ones are not kept
inline constexpr std::size_t kMetadataEntriesMax = 1024;
inline constexpr std::uint64_t kTarExtraMax = 1U << 20U;  // a long name, or the pax records of a member
inline constexpr std::size_t kRecordNameMax = 4096;       // a member's path, or a key with its database's name
inline constexpr std::uint64_t kRecordsPerContainerMax = 1ULL << 28U;
inline constexpr std::size_t kLmdbDepthMax = 32;
inline constexpr std::uint64_t kLmdbPagesMax = 1ULL << 30U;    // a bit of memory each
inline constexpr std::uint64_t kFrontMatterMax = 1U << 16U;    // of a model card, with its two lines of dashes
inline constexpr std::uint64_t kAdapterConfigMax = 1U << 20U;  // larger ones are not looked at
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
inline constexpr std::uint64_t kFileTableMax = 1ULL << 30U;     // of a data set's small files
inline constexpr std::uint64_t kPackedManifestMax = 1U << 20U;  // one chunk; a larger one stays a file
inline constexpr std::uint64_t kVersionBytesMax = 1ULL << 62U;  // of all files together: offsets and sums fit off_t
inline constexpr std::size_t kFormatNameMax = 32;
inline constexpr std::uint64_t kTreeEntriesPerTensor = 64;      // generated nodes and references; models need about 12
inline constexpr std::uint64_t kTreeEntriesSpare = 65'536;      // that any version may have, however few its tensors
inline constexpr std::uint64_t kDraftFactsMax = 1U << 20U;      // .weft.json of a draft
inline constexpr std::uint64_t kDraftReserveMax = 256U << 20U;  // disk space that drafts leave: this at most,
inline constexpr std::uint64_t kDraftReservePart = 100;         // and a hundredth of the disk
inline constexpr std::uint64_t kTrainerStateMax = 64U << 20U;   // trainer_state.json of a checkpoint
inline constexpr std::size_t kTrainerValuesMax = 4U << 20U;     // JSON values in it
inline constexpr std::uint64_t kCheckpointMetadataMax = 256U << 20U;  // .metadata of a distributed checkpoint
inline constexpr std::size_t kMessageMax = 16U << 10U;
inline constexpr std::size_t kMetricsMax = 256;
inline constexpr std::size_t kMetricTextMax = 256;
inline constexpr std::size_t kParentsMax = 64;
inline constexpr std::uint64_t kVersionNumberMax = 1U << 24U;  // of one model's versions; each has a row for ever

// A store's counters. The inode numbers of a mount hold so much (vfs/numbers.h); a publish above is refused.
inline constexpr std::uint64_t kStoredInoMax = (1ULL << 57U) - 1;
inline constexpr std::uint64_t kBlobNumberMax = (1ULL << 57U) - 1;
inline constexpr std::uint64_t kIdMax = (1ULL << 32U) - 1;  // of versions, and of models

// Finding a parent among the versions that hold the same blobs: so many of the largest tensors, of each so many holders
// from each end, and so many versions that are compared as a whole.
inline constexpr std::size_t kKinTensorsMax = 4096;
inline constexpr std::size_t kKinHoldersMax = 128;
inline constexpr std::size_t kKinComparedMax = 16;
// Of a version's kin: so many are walked to in all, and drawn as a graph.
inline constexpr std::size_t kKinCountedMax = 10'000;
inline constexpr std::size_t kKinDrawnMax = 40;

// Architectures. What is larger has none; nothing is refused for it.
inline constexpr std::uint64_t kConfigMax = 1U << 20U;     // a config.json that is read
inline constexpr std::size_t kConfigEntriesMax = 4096;     // facts of one
inline constexpr std::size_t kConfigTextMax = 256;         // a key or value of one
inline constexpr std::size_t kArchLayersMax = 131'072;     // of a version
inline constexpr std::uint64_t kArchEdgesMax = 1U << 20U;  // inputs of all layers together
inline constexpr std::size_t kArchTextMax = 64;            // a kind
inline constexpr std::size_t kArchFamilyMax = 256;
inline constexpr unsigned kArchTensorUsesMax = 8;      // layers that are tied to one tensor
inline constexpr std::size_t kArchParamsMax = 64;      // of one layer
inline constexpr std::uint64_t kMatchStepsMax = 4096;  // of a match, before all classes are counted
inline constexpr std::size_t kInfoVerticesMax = 2048;  // of a graph that info.json lists
inline constexpr std::uint64_t kGraphJsonMax = 256U << 20U;

// Queries.
inline constexpr std::size_t kFindQueryMax = 64U << 10U;
inline constexpr std::size_t kFindDepthMax = 64;

// Advice on saving.
inline constexpr std::size_t kLossPointsMax = 1'000'000;              // of a training run
inline constexpr std::size_t kLossesFittedMax = 16'384;               // more are averaged to so many
inline constexpr std::size_t kLossLineMax = 64U << 10U;               // bytes of a line of a CSV file
inline constexpr double kLossMax = 1e15;                              // its size
inline constexpr std::uint64_t kTrainingStepMax = 1ULL << 53U;        // whole numbers of a double
inline constexpr double kTrainingSecondsMax = 1e11;                   // a point in time, or how long something takes
inline constexpr double kTrainingSecondsMin = 1e-12;                  // what an iteration or a request takes
inline constexpr std::uint64_t kIterationsAdvisedMax = 10'000'000;    // to come
inline constexpr std::uint64_t kRequestsMax = 1'000'000'000'000'000;  // to come

// Records of the store.
inline constexpr std::uint64_t kRecordMax = 1ULL << 30U;

// A long change, as a removal of many versions or gc, is made in batches, each under the writer lock for itself: so
// many versions, packs or files, and about so many rows.
inline constexpr std::size_t kBatchItems = 256;
inline constexpr std::size_t kBatchRows = 4096;

// An origin.
inline constexpr std::uint64_t kOriginIdentityMax = 64U << 10U;  // bytes of weft-origin
inline constexpr std::uint64_t kSaidMax = 4U << 20U;             // of one record of its journal

// A mount.
inline constexpr std::size_t kOpenHandlesMax = 1U << 22U;
inline constexpr std::size_t kFileMapsMax = 16'384;  // of the 65,530 mappings that Linux gives a process
inline constexpr std::size_t kReadPartsMax = 64;     // of one answer that is given where it lies

// Between daemons.
inline constexpr std::size_t kNodeIdMax = 64;
inline constexpr std::size_t kEndpointAddressMax = 256;  // bytes of a transport's address
inline constexpr std::uint64_t kKeyFileMax = 4096;
inline constexpr std::size_t kPeerSessionsMax = 1024;  // that others have opened; the longest unused goes first
inline constexpr std::size_t kPeerHalfOpenMax = 64;    // handshakes of strangers, for a second each
inline constexpr std::size_t kPeerHellosMax = 64;      // that wait to be answered
inline constexpr std::size_t kPeerNewcomersMax = 256;  // addresses that proved hellos named, where nobody was heard yet
inline constexpr std::size_t kPeerStrangersMax = 8;    // the same, of hellos by who has not the cluster's key
inline constexpr std::size_t kPeerConnectionsMax = 1024;        // that others have made; the longest silent goes first
inline constexpr std::size_t kPeerConnectionsHalfOpenMax = 64;  // of them, that are not made yet; as many wait for it
inline constexpr std::size_t kReceiveBuffersMax = 8192;         // of messages
inline constexpr std::size_t kSendBuffersMax = 128;
inline constexpr std::size_t kPeerCallsMax = 256;     // of others, that wait or are being answered
inline constexpr std::size_t kPeerCallsEachMax = 64;  // of one other
inline constexpr std::size_t kWindowsMax = 4096;      // open
inline constexpr std::uint64_t kWindowBytesMax = 4ULL << 30U;
inline constexpr std::uint64_t kPinnedAtRestMax = 64U << 20U;   // bytes that stay registered for the next read
inline constexpr std::uint64_t kLockedMemoryMin = 128U << 20U;  // that RLIMIT_MEMLOCK allows, for RDMA hardware
inline constexpr std::size_t kLandingBuffersMax = 16;           // in use
inline constexpr std::size_t kLandingBuffersAsideMax = 32;      // that reads which nobody waits for may still write to
inline constexpr std::uint64_t kWindowCopiesMax = 192U << 20U;  // in windows on no file
inline constexpr std::size_t kWithdrawnMax = 4096;  // windows that nobody closed whose addresses are kept unused
inline constexpr std::size_t kBasesPerRequestMax = 70;
inline constexpr std::size_t kCodedCacheMax = 256U << 20U;  // bytes of coded chunks that a node keeps
inline constexpr std::size_t kCodersKeptMax = 8;            // of 8 MiB each, with their buffers
inline constexpr std::size_t kAnnouncedBytesMax = 4096;     // of the bits that say which chunks a node has
inline constexpr std::size_t kAnnouncedAtOnceMax = 128;     // manifests of one announcement
inline constexpr std::size_t kHoldersMax = 64;              // of one manifest, that a directory knows

// The control socket of a daemon. What a connection sends above these ends it. Of connections, running handlers and
// received descriptors a user holds at most Each, all users but root and the daemon's own hold at most Others, and the
// rest is theirs.
inline constexpr std::size_t kControlMessageMax = 1U << 20U;  // bytes of JSON
inline constexpr std::size_t kControlDepthMax = 32;
inline constexpr std::size_t kControlValuesMax = 65'536;  // of one message
inline constexpr std::size_t kControlConnectionsMax = 1024;
inline constexpr std::size_t kControlConnectionsOthersMax = 896;
inline constexpr std::size_t kControlConnectionsEachMax = 128;
inline constexpr std::size_t kControlCallsMax = 1024;   // in flight, of one connection
inline constexpr std::size_t kControlRunningMax = 256;  // that have a thread each, of all connections
inline constexpr std::size_t kControlRunningOthersMax = 192;
inline constexpr std::size_t kControlRunningEachMax = 96;
inline constexpr std::size_t kControlFdsMax = 1024;  // that came with messages and are not closed yet
inline constexpr std::size_t kControlFdsOthersMax = 768;
inline constexpr std::size_t kControlFdsEachMax = 256;
inline constexpr std::uint64_t kControlMessageSecondsMax = 10;  // from the first byte of a message to its last
inline constexpr std::size_t kControlAcceptsAtOnceMax = 64;     // then other connections have their turn
inline constexpr std::size_t kControlUnreadMax = 4;             // messages of a call that its handler has not taken yet
inline constexpr std::size_t kControlQueueMax = 16U << 20U;     // bytes that the other end has not taken yet

// The metrics port. A client above these takes the place of the one that has been silent for longest.
inline constexpr std::size_t kMetricsClientsMax = 64;
inline constexpr std::size_t kMetricsRequestMax = 8U << 10U;  // bytes

// What etcd answers. It sends itself no more than 4 MiB in one message, which base64 and JSON make less than twice
// that.
inline constexpr std::size_t kEtcdAnswerMax = 16U << 20U;  // bytes of an answer, or of one line of a stream
inline constexpr std::size_t kEtcdValuesMax = 1'000'000;   // JSON values in one
inline constexpr std::size_t kEtcdErrorValuesMax = 256;    // of an error
inline constexpr std::size_t kEtcdDepthMax = 16;
inline constexpr std::size_t kEtcdTokenMax = 4096;
inline constexpr std::size_t kEtcdOpsMax = 128;  // of one transaction: etcd's --max-txn-ops
inline constexpr std::size_t kEtcdEndpointsMax = 16;

// The registry.
inline constexpr std::size_t kRegistryRecordMax = 1'000'000;  // etcd takes requests of 1.5 MiB
inline constexpr std::size_t kRegistryPacksMax = 65'536;      // that come with one version
inline constexpr std::size_t kRegistryTagsMax = 100;          // set by one publish
inline constexpr std::uint64_t kTreeNodesMax = 1ULL << 54U;   // of a data set; a model has fewer than 2^32
inline constexpr std::size_t kRegistryRefusalsMax = 32;       // that status names

}  // namespace weft::limits
