"""A file on a FUSE file system of its own. Its reads wait until release(): the kernel keeps the memory of a direct read
pinned until then, whatever becomes of the mapping and of the descriptor that it belongs to."""
import ctypes
import os
import struct
import threading

ROOT, FILE = 1, 2
FORGET, BATCH_FORGET, INTERRUPT = 2, 42, 36  # requests without a reply
IN_HEADER, OUT_HEADER = struct.Struct("<IIQQIIIHH"), struct.Struct("<IiQ")
BUFFER_BYTES = 1 << 17
SIZE = 1 << 20


def attr(node):
    mode = 0o40755 if node == ROOT else 0o100644
    return struct.pack("<6Q10I", node, SIZE, SIZE // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


class SlowFile:
    """Needs root, and the directory `at`. `path` is the file, which everybody may read. A look at the name `release` beside
    it releases the reads, for other processes."""

    def __init__(self, at):
        self.at, self.path = at, at / "slow"
        self.reads = []  # (number, bytes) of the reads that wait
        self.released = threading.Event()
        self.hears, self.says = os.pipe()  # a byte for each read, which other processes may wait for

    def __enter__(self):
        self.device = os.open("/dev/fuse", os.O_RDWR)
        libc = ctypes.CDLL(None, use_errno=True)
        options = f"fd={self.device},rootmode=40755,user_id=0,group_id=0,allow_other"
        if libc.mount(b"slow", os.fsencode(self.at), b"fuse.slow", 0, options.encode()) != 0:
            raise OSError(ctypes.get_errno(), "mounting a slow file")
        self.server = threading.Thread(target=self.serve, daemon=True)
        self.server.start()
        return self

    def __exit__(self, *exception):
        self.release()
        ctypes.CDLL(None).umount2(os.fsencode(self.at), 2)
        self.server.join(10)
        for fd in (self.device, self.hears, self.says):
            os.close(fd)

    def release(self):
        """Answers the reads that wait, and all later ones."""
        self.released.set()
        while self.reads:
            number, size = self.reads.pop()
            self.reply(number, b"\xff" * size)

    def reply(self, number, body=b"", error=0):
        os.write(self.device, OUT_HEADER.pack(OUT_HEADER.size + len(body), -error, number) + body)

    def serve(self):
        while True:
            try:
                request = os.read(self.device, BUFFER_BYTES)
            except OSError:  # unmounted
                return
            _, opcode, number, node, *_ = IN_HEADER.unpack_from(request)
            if opcode not in (FORGET, BATCH_FORGET, INTERRUPT):
                self.answer(opcode, number, node, request[IN_HEADER.size:])

    def answer(self, opcode, number, node, body):
        if opcode == 26:  # INIT
            self.reply(number, struct.pack("<4I2H2I2H8I", 7, 31, 0, 0, 0, 0, 4096, 1, 0, 0, *[0] * 8))
        elif opcode == 1:  # LOOKUP
            if body == b"release\0":
                self.release()
            self.reply(number, struct.pack("<4Q2I", FILE, 0, 1, 1, 0, 0) + attr(FILE))
        elif opcode == 3:  # GETATTR
            self.reply(number, struct.pack("<QII", 1, 0, 0) + attr(node))
        elif opcode in (14, 27):  # OPEN, OPENDIR: reads bypass the page cache
            self.reply(number, struct.pack("<QIi", 0, 1, 0))
        elif opcode == 15:  # READ
            self.reads.append((number, struct.unpack_from("<QQI", body)[2]))
            os.write(self.says, b"1")
            if self.released.is_set():
                self.release()
        elif opcode in (18, 25, 29):  # RELEASE, FLUSH, RELEASEDIR
            self.reply(number)
        else:
            self.reply(number, error=38)  # ENOSYS
