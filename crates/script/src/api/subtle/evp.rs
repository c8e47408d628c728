//! RSA and AES-GCM through AWS-LC's C interface, for what `aws_lc_rs` has no safe function for: signatures with SHA-1, RSA keys
//! below 2048 bits, the numbers of a private key, and GCM tags below 128 bits.
//!
//! Owns: the library's objects, each freed once. Never: parses what a script passed.
#![expect(unsafe_code, reason = "calls into C; every site says why it holds")]

use std::ffi::c_int;
use std::ptr::{self, NonNull};

use aws_lc_sys as lc;

use super::algorithm::Hash;
use super::usage::Way;

/// A private or public key of RSA.
pub(super) struct RsaKey(Owned<lc::EVP_PKEY>);

/// How a signature is padded.
#[derive(Debug, Clone, Copy)]
pub(super) enum Padding {
    Pkcs1,
    Pss { salt_bytes: usize },
}

impl RsaKey {
    pub(super) fn generate(bits: u32) -> Option<Self> {
        // SAFETY: a constructor of the library, whose result nothing else frees.
        let rsa = unsafe { Owned::new(lc::RSA_new(), lc::RSA_free) }?;
        let exponent = big_number(&lc::RSA_F4.to_be_bytes())?;
        let bits = c_int::try_from(bits).ok()?;
        // SAFETY: both objects are alive; no callback is given.
        let code = unsafe { lc::RSA_generate_key_ex(rsa.raw(), bits, exponent.raw(), ptr::null_mut()) };
        succeeded(code)?;
        Self::of(&rsa)
    }

    /// A private key (RFC 5208).
    pub(super) fn from_pkcs8(der: &[u8]) -> Option<Self> {
        let key = Self::parsed(der, lc::EVP_parse_private_key)?;
        // A key of its modulus and private exponent alone is one that k6 rejects, too.
        key.private_numbers().iter().all(|number| !number.is_empty()).then_some(key)
    }

    /// A public key (RFC 5280).
    pub(super) fn from_spki(der: &[u8]) -> Option<Self> {
        Self::parsed(der, lc::EVP_parse_public_key)
    }

    fn parsed(der: &[u8], parse: unsafe extern "C" fn(*mut lc::CBS) -> *mut lc::EVP_PKEY) -> Option<Self> {
        let mut rest = lc::CBS { data: der.as_ptr(), len: der.len() };
        // SAFETY: `rest` is all of `der`, which lives on; the parser gives a new object or null.
        let key = unsafe { Owned::new(parse(&raw mut rest), lc::EVP_PKEY_free) }?;
        // SAFETY: the object is alive.
        let is_rsa = unsafe { lc::EVP_PKEY_id(key.raw()) } == lc::EVP_PKEY_RSA;
        (is_rsa && rest.len == 0).then_some(Self(key))
    }

    /// A public key of its modulus and exponent.
    pub(super) fn from_public_numbers(numbers: [&[u8]; 2]) -> Option<Self> {
        let [n, e] = numbers.map(big_number);
        let (n, e) = (n?, e?);
        // SAFETY: the numbers are alive, and copied; the result is a new object or null.
        let rsa = unsafe { Owned::new(lc::RSA_new_public_key(n.raw(), e.raw()), lc::RSA_free) }?;
        Self::of(&rsa)
    }

    /// A private key of its public and its private numbers, in the order of RFC 8017 A.1.2. They must fit each other.
    pub(super) fn from_private_numbers(public: [&[u8]; 2], private: [&[u8]; 6]) -> Option<Self> {
        let ([n, e], [d, p, q, dp, dq, qi]) = (public.map(big_number), private.map(big_number));
        let (n, e, d, p, q, dp, dq, qi) = (n?, e?, d?, p?, q?, dp?, dq?, qi?);
        // SAFETY: the numbers are alive, and copied; the result is a new object or null.
        let rsa = unsafe {
            let raw = lc::RSA_new_private_key(
                n.raw(),
                e.raw(),
                d.raw(),
                p.raw(),
                q.raw(),
                dp.raw(),
                dq.raw(),
                qi.raw(),
            );
            Owned::new(raw, lc::RSA_free)
        }?;
        Self::of(&rsa)
    }

    fn of(rsa: &Owned<lc::RSA>) -> Option<Self> {
        // SAFETY: a constructor of the library, whose result nothing else frees.
        let key = unsafe { Owned::new(lc::EVP_PKEY_new(), lc::EVP_PKEY_free) }?;
        // SAFETY: both objects are alive; the key takes its own reference.
        succeeded(unsafe { lc::EVP_PKEY_set1_RSA(key.raw(), rsa.raw()) })?;
        Some(Self(key))
    }

    pub(super) fn to_pkcs8(&self) -> Option<Vec<u8>> {
        self.written(lc::EVP_marshal_private_key)
    }

    pub(super) fn to_spki(&self) -> Option<Vec<u8>> {
        self.written(lc::EVP_marshal_public_key)
    }

    fn written(
        &self,
        write: unsafe extern "C" fn(*mut lc::CBB, *const lc::EVP_PKEY) -> c_int,
    ) -> Option<Vec<u8>> {
        let (mut data, mut byte_count) = (ptr::null_mut(), 0);
        // SAFETY: all zeros is a builder before its `CBB_init`, and one that is not finished is cleaned up. What it gives when it
        // is finished are so many bytes, which are copied and freed.
        unsafe {
            let mut builder: lc::CBB = std::mem::zeroed();
            let is_written = lc::CBB_init(&raw mut builder, 0) == 1
                && write(&raw mut builder, self.0.raw()) == 1
                && lc::CBB_finish(&raw mut builder, &raw mut data, &raw mut byte_count) == 1;
            if !is_written {
                lc::CBB_cleanup(&raw mut builder);
                return None;
            }
            let bytes = std::slice::from_raw_parts(data, byte_count).to_vec();
            lc::OPENSSL_free(data.cast());
            Some(bytes)
        }
    }

    pub(super) fn bits(&self) -> u32 {
        // SAFETY: the key is alive.
        unsafe { lc::EVP_PKEY_bits(self.0.raw()) }.unsigned_abs()
    }

    /// Modulus and public exponent.
    pub(super) fn public_numbers(&self) -> [Vec<u8>; 2] {
        // SAFETY: the key is alive and of RSA, so it has these numbers; they are its own, and copied.
        unsafe {
            let rsa = lc::EVP_PKEY_get0_RSA(self.0.raw());
            [bytes_of(lc::RSA_get0_n(rsa)), bytes_of(lc::RSA_get0_e(rsa))]
        }
    }

    /// Private exponent, both primes, and what follows from them; each is empty that the key does not have.
    pub(super) fn private_numbers(&self) -> [Vec<u8>; 6] {
        let [mut p, mut q, mut dp, mut dq, mut qi] = [ptr::null(); 5];
        // SAFETY: the key is alive and of RSA; the numbers are its own or null, and copied.
        unsafe {
            let rsa = lc::EVP_PKEY_get0_RSA(self.0.raw());
            lc::RSA_get0_factors(rsa, &raw mut p, &raw mut q);
            lc::RSA_get0_crt_params(rsa, &raw mut dp, &raw mut dq, &raw mut qi);
            [lc::RSA_get0_d(rsa), p, q, dp, dq, qi].map(|number| bytes_of(number))
        }
    }

    pub(super) fn sign(&self, hash: Hash, padding: Padding, data: &[u8]) -> Option<Vec<u8>> {
        let context = self.context(lc::EVP_PKEY_sign_init)?;
        padding.set(&context, hash)?;
        self.transformed(&context, lc::EVP_PKEY_sign, &hash.digest(data))
    }

    pub(super) fn verify(&self, hash: Hash, padding: Padding, signature: &[u8], data: &[u8]) -> Option<()> {
        let context = self.context(lc::EVP_PKEY_verify_init)?;
        padding.set(&context, hash)?;
        let (digest, signature_bytes) = (hash.digest(data), signature.len());
        // SAFETY: the context is alive, and both slices are of the lengths given.
        succeeded(unsafe {
            lc::EVP_PKEY_verify(
                context.raw(),
                signature.as_ptr(),
                signature_bytes,
                digest.as_ptr(),
                digest.len(),
            )
        })
    }

    /// Encrypts or decrypts with OAEP.
    pub(super) fn crypt(&self, way: Way, hash: Hash, label: &[u8], data: &[u8]) -> Option<Vec<u8>> {
        let (context, operation): (_, Transform) = match way {
            Way::Encrypt => (self.context(lc::EVP_PKEY_encrypt_init)?, lc::EVP_PKEY_encrypt),
            Way::Decrypt => (self.context(lc::EVP_PKEY_decrypt_init)?, lc::EVP_PKEY_decrypt),
        };
        // SAFETY: the context is alive. It takes over the label, which is a copy of the library's own, if it succeeds.
        unsafe {
            let raw = context.raw();
            succeeded(lc::EVP_PKEY_CTX_set_rsa_padding(raw, lc::RSA_PKCS1_OAEP_PADDING))?;
            succeeded(lc::EVP_PKEY_CTX_set_rsa_oaep_md(raw, hash.evp()))?;
            succeeded(lc::EVP_PKEY_CTX_set_rsa_mgf1_md(raw, hash.evp()))?;
            let copy = lc::OPENSSL_memdup(label.as_ptr().cast(), label.len());
            if lc::EVP_PKEY_CTX_set0_rsa_oaep_label(raw, copy.cast(), label.len()) != 1 {
                lc::OPENSSL_free(copy);
                return None;
            }
        }
        self.transformed(&context, operation, data)
    }

    fn context(
        &self,
        init: unsafe extern "C" fn(*mut lc::EVP_PKEY_CTX) -> c_int,
    ) -> Option<Owned<lc::EVP_PKEY_CTX>> {
        // SAFETY: the key is alive, and the context takes its own reference; it is freed once.
        unsafe {
            let raw = lc::EVP_PKEY_CTX_new(self.0.raw(), ptr::null_mut());
            let context = Owned::new(raw, lc::EVP_PKEY_CTX_free)?;
            succeeded(init(context.raw()))?;
            Some(context)
        }
    }

    fn transformed(
        &self,
        context: &Owned<lc::EVP_PKEY_CTX>,
        transform: Transform,
        data: &[u8],
    ) -> Option<Vec<u8>> {
        // SAFETY: the key is alive.
        let bytes_max = unsafe { lc::EVP_PKEY_size(self.0.raw()) };
        let mut out = vec![0; usize::try_from(bytes_max).ok()?];
        let mut byte_count = out.len();
        // SAFETY: the context is alive, and both slices are of the lengths given.
        succeeded(unsafe {
            transform(context.raw(), out.as_mut_ptr(), &raw mut byte_count, data.as_ptr(), data.len())
        })?;
        out.truncate(byte_count);
        Some(out)
    }
}

/// What signs, encrypts and decrypts: context, output and its length, input and its length.
type Transform = unsafe extern "C" fn(*mut lc::EVP_PKEY_CTX, *mut u8, *mut usize, *const u8, usize) -> c_int;

impl Padding {
    fn set(self, context: &Owned<lc::EVP_PKEY_CTX>, hash: Hash) -> Option<()> {
        let raw = context.raw();
        // SAFETY: the context is alive, and hashes are constants of the library.
        unsafe {
            succeeded(lc::EVP_PKEY_CTX_set_signature_md(raw, hash.evp()))?;
            match self {
                Self::Pkcs1 => succeeded(lc::EVP_PKEY_CTX_set_rsa_padding(raw, lc::RSA_PKCS1_PADDING)),
                Self::Pss { salt_bytes } => {
                    succeeded(lc::EVP_PKEY_CTX_set_rsa_padding(raw, lc::RSA_PKCS1_PSS_PADDING))?;
                    succeeded(lc::EVP_PKEY_CTX_set_rsa_pss_saltlen(raw, c_int::try_from(salt_bytes).ok()?))
                }
            }
        }
    }
}

impl Hash {
    fn evp(self) -> *const lc::EVP_MD {
        // SAFETY: each returns a constant of the library.
        unsafe {
            match self {
                Self::Sha1 => lc::EVP_sha1(),
                Self::Sha256 => lc::EVP_sha256(),
                Self::Sha384 => lc::EVP_sha384(),
                Self::Sha512 => lc::EVP_sha512(),
            }
        }
    }
}

/// What AES-GCM takes besides its key and data.
pub(super) struct Gcm<'a> {
    pub(super) iv: &'a [u8],
    pub(super) additional: &'a [u8],
    pub(super) tag_bytes: usize,
}

impl Gcm<'_> {
    pub(super) fn crypt(&self, way: Way, key: &[u8], data: &[u8]) -> Option<Vec<u8>> {
        let mut out = vec![0; data.len() + self.tag_bytes];
        let mut byte_count = 0;
        // SAFETY: the context is a new object, freed once, and every slice is of the length given; the library checks the lengths
        // of key and tag.
        succeeded(unsafe {
            let cipher = match key.len() {
                16 => lc::EVP_aead_aes_128_gcm(),
                24 => lc::EVP_aead_aes_192_gcm(),
                _ => lc::EVP_aead_aes_256_gcm(),
            };
            let context = lc::EVP_AEAD_CTX_new(cipher, key.as_ptr(), key.len(), self.tag_bytes);
            let context = Owned::new(context, lc::EVP_AEAD_CTX_free)?;
            let crypt = match way {
                Way::Encrypt => lc::EVP_AEAD_CTX_seal,
                Way::Decrypt => lc::EVP_AEAD_CTX_open,
            };
            crypt(
                context.raw(),
                out.as_mut_ptr(),
                &raw mut byte_count,
                out.len(),
                self.iv.as_ptr(),
                self.iv.len(),
                data.as_ptr(),
                data.len(),
                self.additional.as_ptr(),
                self.additional.len(),
            )
        })?;
        out.truncate(byte_count);
        Some(out)
    }
}

/// An object of the library, freed when it is dropped.
struct Owned<T> {
    raw: NonNull<T>,
    free: unsafe extern "C" fn(*mut T),
}

impl<T> Owned<T> {
    /// Takes over what a constructor returned; none: it returned null.
    ///
    /// # Safety
    /// Nothing else frees the object, and `free` is the function for it.
    unsafe fn new(raw: *mut T, free: unsafe extern "C" fn(*mut T)) -> Option<Self> {
        NonNull::new(raw).map(|raw| Self { raw, free })
    }

    fn raw(&self) -> *mut T {
        self.raw.as_ptr()
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: `new` was promised that this frees it, and nothing else does.
        unsafe { (self.free)(self.raw()) }
    }
}

fn big_number(bytes: &[u8]) -> Option<Owned<lc::BIGNUM>> {
    // SAFETY: the slice is of the length given, and read; the result is a new object or null.
    unsafe { Owned::new(lc::BN_bin2bn(bytes.as_ptr(), bytes.len(), ptr::null_mut()), lc::BN_free) }
}

/// A number without leading zeros.
///
/// # Safety
/// It is alive, or null.
unsafe fn bytes_of(number: *const lc::BIGNUM) -> Vec<u8> {
    if number.is_null() {
        return Vec::new();
    }
    // SAFETY: the number is alive, and writes as many bytes as it says it has.
    unsafe {
        let mut bytes = vec![0; lc::BN_num_bytes(number) as usize];
        lc::BN_bn2bin(number, bytes.as_mut_ptr());
        bytes
    }
}

/// The library's functions return 1 if they succeed.
fn succeeded(code: c_int) -> Option<()> {
    (code == 1).then_some(())
}
