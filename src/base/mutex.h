// Mutexes, locks and conditions that clang's -Wthread-safety checks, and the annotations for it. They cost as much as
// those of the standard library, which they wrap. Other compilers ignore the annotations.
#pragma once

#include <condition_variable>
#include <mutex>
#include <shared_mutex>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
// The mutexes of libstdc++ end without a call that ThreadSanitizer sees. A later mutex at the same address, such as
// that of the next test, would inherit the lock order of the dead one.
#define WEFT_MUTEX_DESTRUCTOR(Class, native) \
  Class() = default;                         \
  ~Class() {                                 \
    __tsan_mutex_destroy(&(native), 0);      \
  }
#else
#define WEFT_MUTEX_DESTRUCTOR(Class, native)
#endif

#ifdef __clang__
#define WEFT_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define WEFT_THREAD_ANNOTATION(x)
#endif

#define WEFT_CAPABILITY(name) WEFT_THREAD_ANNOTATION(capability(name))
#define WEFT_SCOPED_CAPABILITY WEFT_THREAD_ANNOTATION(scoped_lockable)

// A variable that is only used while the mutex is held; with a shared lock it is only read.
#define WEFT_GUARDED_BY(mutex) WEFT_THREAD_ANNOTATION(guarded_by(mutex))
// A mutex that is locked before others, if a thread holds both.
#define WEFT_ACQUIRED_BEFORE(...) WEFT_THREAD_ANNOTATION(acquired_before(__VA_ARGS__))

// A function or lambda whose caller holds the mutexes; in a lambda the annotation follows the parameters.
#define WEFT_REQUIRES(...) WEFT_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define WEFT_REQUIRES_SHARED(...) WEFT_THREAD_ANNOTATION(requires_shared_capability(__VA_ARGS__))
// A function that locks the mutexes, so that its caller must not hold them.
#define WEFT_EXCLUDES(...) WEFT_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))

#define WEFT_ACQUIRE(...) WEFT_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define WEFT_ACQUIRE_SHARED(...) WEFT_THREAD_ANNOTATION(acquire_shared_capability(__VA_ARGS__))
#define WEFT_RELEASE(...) WEFT_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define WEFT_RELEASE_GENERIC(...) WEFT_THREAD_ANNOTATION(release_generic_capability(__VA_ARGS__))

namespace weft {

class WEFT_CAPABILITY("mutex") Mutex {
 public:
  WEFT_MUTEX_DESTRUCTOR(Mutex, native_)
  void lock() WEFT_ACQUIRE() { native_.lock(); }
  void unlock() WEFT_RELEASE() { native_.unlock(); }

 private:
  friend class UniqueLock;
  std::mutex native_;
};

// Holds a mutex while it lives.
class WEFT_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) WEFT_ACQUIRE(mutex) : mutex_(mutex) { mutex.lock(); }
  ~MutexLock() WEFT_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// As MutexLock, but can release the mutex and wait for a Condition meanwhile.
class WEFT_SCOPED_CAPABILITY UniqueLock {
 public:
  explicit UniqueLock(Mutex& mutex) WEFT_ACQUIRE(mutex) : native_(mutex.native_) {}
  ~UniqueLock() WEFT_RELEASE() = default;
  UniqueLock(const UniqueLock&) = delete;
  UniqueLock& operator=(const UniqueLock&) = delete;

  void lock() WEFT_ACQUIRE() { native_.lock(); }
  void unlock() WEFT_RELEASE() { native_.unlock(); }
  std::unique_lock<std::mutex>& native() { return native_; }

 private:
  std::unique_lock<std::mutex> native_;
};

// A condition variable. The calls are those of std::condition_variable. A predicate has WEFT_REQUIRES(mutex).
class Condition {
 public:
  void notify_one() { native_.notify_one(); }
  void notify_all() { native_.notify_all(); }
  void wait(UniqueLock& lock) { native_.wait(lock.native()); }
  template <class Predicate>
  void wait(UniqueLock& lock, const Predicate& predicate) {
    native_.wait(lock.native(), predicate);
  }
  template <class Duration>
  std::cv_status wait_for(UniqueLock& lock, const Duration& duration) {
    return native_.wait_for(lock.native(), duration);
  }
  template <class Duration, class Predicate>
  bool wait_for(UniqueLock& lock, const Duration& duration, const Predicate& predicate) {
    return native_.wait_for(lock.native(), duration, predicate);
  }
  template <class Time, class Predicate>
  bool wait_until(UniqueLock& lock, const Time& time, const Predicate& predicate) {
    return native_.wait_until(lock.native(), time, predicate);
  }
  std::condition_variable& native() { return native_; }

 private:
  std::condition_variable native_;
};

// Held by one writer or by any number of readers.
class WEFT_CAPABILITY("shared mutex") SharedMutex {
 public:
  WEFT_MUTEX_DESTRUCTOR(SharedMutex, native_)
  void lock() WEFT_ACQUIRE() { native_.lock(); }
  void unlock() WEFT_RELEASE() { native_.unlock(); }
  void lock_shared() WEFT_ACQUIRE_SHARED() { native_.lock_shared(); }
  void unlock_shared() WEFT_RELEASE_GENERIC() { native_.unlock_shared(); }

 private:
  std::shared_mutex native_;
};

class WEFT_SCOPED_CAPABILITY ExclusiveLock {
 public:
  explicit ExclusiveLock(SharedMutex& mutex) WEFT_ACQUIRE(mutex) : mutex_(mutex) { mutex.lock(); }
  ~ExclusiveLock() WEFT_RELEASE() { mutex_.unlock(); }
  ExclusiveLock(const ExclusiveLock&) = delete;
  ExclusiveLock& operator=(const ExclusiveLock&) = delete;

 private:
  SharedMutex& mutex_;
};

class WEFT_SCOPED_CAPABILITY SharedLock {
 public:
  explicit SharedLock(SharedMutex& mutex) WEFT_ACQUIRE_SHARED(mutex) : mutex_(mutex) { mutex.lock_shared(); }
  ~SharedLock() WEFT_RELEASE_GENERIC() { mutex_.unlock_shared(); }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;

 private:
  SharedMutex& mutex_;
};

}  // namespace weft
